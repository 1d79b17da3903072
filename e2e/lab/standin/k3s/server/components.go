package server

import (
	"context"
	"strings"

	"github.com/gpuctl/gpuctl/e2e/lab/standin/k3s/config"
	"github.com/gpuctl/gpuctl/e2e/lab/standin/k3s/process"
)

// startAPIServer starts the API server with the options of k3s
// pkg/daemons/control/server.go.
func (s *Server) startAPIServer(ctx context.Context) error {
	return s.Group.Run(ctx, process.Child{
		Name:   "kube-apiserver",
		Args:   config.Extra(s.apiServer(), s.Options.List("kube-apiserver-arg")),
		Exited: "apiserver exited",
	})
}

// startControllers starts scheduler and controller manager. Both end if the
// API server does not know their roles yet, so they come after it is ready.
func (s *Server) startControllers(ctx context.Context) error {
	if !s.Options.Bool("disable-scheduler") {
		args := config.Extra(s.scheduler(), s.Options.List("kube-scheduler-arg"))
		if err := s.Group.Run(ctx, process.Child{Name: "kube-scheduler", Args: args}); err != nil {
			return err
		}
	}
	args := config.Extra(s.controllers(), s.Options.List("kube-controller-manager-arg"))
	return s.Group.Run(ctx, process.Child{Name: "kube-controller-manager", Args: args})
}

func (s *Server) apiServer() map[string]string {
	tls := s.Data.TLS
	flags := map[string]string{
		"advertise-address":           s.advertised(),
		"allow-privileged":            "true",
		"anonymous-auth":              "false",
		"api-audiences":               "https://kubernetes.default.svc." + s.domain + ",k3s",
		"authorization-mode":          "Node,RBAC",
		"bind-address":                "127.0.0.1",
		"cert-dir":                    tls("temporary-certs"),
		"client-ca-file":              tls("client-ca.crt"),
		"enable-admission-plugins":    "NodeRestriction",
		"enable-bootstrap-token-auth": "true",
		"endpoint-reconciler-type":    "none", // see cluster.Advertise
		"etcd-cafile":                 tls("etcd/server-ca.crt"),
		"etcd-certfile":               tls("etcd/client.crt"),
		"etcd-keyfile":                tls("etcd/client.key"),
		"etcd-servers":                "https://127.0.0.1:2379",

		"kubelet-certificate-authority":      tls("server-ca.crt"),
		"kubelet-client-certificate":         tls("client-kube-apiserver.crt"),
		"kubelet-client-key":                 tls("client-kube-apiserver.key"),
		"kubelet-preferred-address-types":    "InternalIP,ExternalIP,Hostname",
		"profiling":                          "false",
		"proxy-client-cert-file":             tls("client-auth-proxy.crt"),
		"proxy-client-key-file":              tls("client-auth-proxy.key"),
		"requestheader-allowed-names":        "system:auth-proxy",
		"requestheader-client-ca-file":       tls("request-header-ca.crt"),
		"requestheader-extra-headers-prefix": "X-Remote-Extra-",
		"requestheader-group-headers":        "X-Remote-Group",
		"requestheader-username-headers":     "X-Remote-User",
		"secure-port":                        "6444",
		"service-account-issuer":             "https://kubernetes.default.svc." + s.domain,
		"service-account-key-file":           tls("service.key"),
		"service-account-signing-key-file":   tls("service.current.key"),
		"service-cluster-ip-range":           s.serviceCIDR.String(),
		"service-node-port-range":            s.Options.String("service-node-port-range"),
		"storage-backend":                    "etcd3",
		"tls-cert-file":                      tls("serving-kube-apiserver.crt"),
		"tls-private-key-file":               tls("serving-kube-apiserver.key"),
	}
	if s.Options.Bool("secrets-encryption") {
		flags["encryption-provider-config"] = s.encryptionConfig()
	}
	return flags
}

func (s *Server) scheduler() map[string]string {
	kubeconfig := s.Data.Cred("scheduler.kubeconfig")
	return s.withLease(map[string]string{
		"authentication-kubeconfig": kubeconfig,
		"authorization-kubeconfig":  kubeconfig,
		"kubeconfig":                kubeconfig,
		"bind-address":              "127.0.0.1",
		"profiling":                 "false",
		"secure-port":               "10259",
		"tls-cert-file":             s.Data.TLS("kube-scheduler/kube-scheduler.crt"),
		"tls-private-key-file":      s.Data.TLS("kube-scheduler/kube-scheduler.key"),
	})
}

func (s *Server) controllers() map[string]string {
	tls := s.Data.TLS
	kubeconfig := s.Data.Cred("controller.kubeconfig")
	return s.withLease(map[string]string{
		"allocate-node-cidrs":              "true",
		"authentication-kubeconfig":        kubeconfig,
		"authorization-kubeconfig":         kubeconfig,
		"kubeconfig":                       kubeconfig,
		"bind-address":                     "127.0.0.1",
		"cloud-provider":                   "external",
		"cluster-cidr":                     strings.Join(s.Options.List("cluster-cidr"), ","),
		"configure-cloud-routes":           "false",
		"controllers":                      "*,tokencleaner",
		"profiling":                        "false",
		"root-ca-file":                     tls("server-ca.crt"),
		"secure-port":                      "10257",
		"service-account-private-key-file": tls("service.current.key"),
		"service-cluster-ip-range":         s.serviceCIDR.String(),
		"tls-cert-file":                    tls("kube-controller-manager/kube-controller-manager.crt"),
		"tls-private-key-file":             tls("kube-controller-manager/kube-controller-manager.key"),
		"use-service-account-credentials":  "true",

		"cluster-signing-kube-apiserver-client-cert-file": tls("client-ca.crt"),
		"cluster-signing-kube-apiserver-client-key-file":  tls("client-ca.key"),
		"cluster-signing-kubelet-client-cert-file":        tls("client-ca.crt"),
		"cluster-signing-kubelet-client-key-file":         tls("client-ca.key"),
		"cluster-signing-kubelet-serving-cert-file":       tls("server-ca.crt"),
		"cluster-signing-kubelet-serving-key-file":        tls("server-ca.key"),
		"cluster-signing-legacy-unknown-cert-file":        tls("server-ca.crt"),
		"cluster-signing-legacy-unknown-key-file":         tls("server-ca.key"),
	})
}

// withLease adds leader election. It is off with sqlite: there is one server
// only. A killed process does not give its lease back, so leases are short: a
// restarted server soon works again.
func (s *Server) withLease(flags map[string]string) map[string]string {
	if !s.etcd() {
		flags["leader-elect"] = "false"
		return flags
	}
	flags["leader-elect"] = "true"
	flags["leader-elect-lease-duration"] = "5s"
	flags["leader-elect-renew-deadline"] = "4s"
	flags["leader-elect-retry-period"] = "1s"
	return flags
}
