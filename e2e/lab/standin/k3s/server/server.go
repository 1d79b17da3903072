// Package server is the control-plane half of k3s: certificates, datastore,
// the components of Kubernetes, the supervisor on port 6443, and packaged
// components. The order of steps is that of k3s pkg/server and
// pkg/daemons/control.
package server

import (
	"context"
	"fmt"
	"net"
	"strings"

	"github.com/gpuctl/gpuctl/e2e/lab/standin/k3s/cluster"
	"github.com/gpuctl/gpuctl/e2e/lab/standin/k3s/config"
	"github.com/gpuctl/gpuctl/e2e/lab/standin/k3s/host"
	"github.com/gpuctl/gpuctl/e2e/lab/standin/k3s/layout"
	"github.com/gpuctl/gpuctl/e2e/lab/standin/k3s/process"
	"github.com/gpuctl/gpuctl/e2e/lab/standin/k3s/supervisor"
	"github.com/sirupsen/logrus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// Server is one server of a cluster.
type Server struct {
	Options *config.Options
	Data    layout.Data
	ID      host.Identity
	Env     host.Environment
	Group   *process.Group

	serviceCIDR *net.IPNet
	dns         string
	domain      string
	secret      string // of servers
	agentSecret string // of agents
	pki         authorities
	supervisor  *supervisor.Supervisor
	client      kubernetes.Interface

	// leader is the server that this one joins; nil when it joins none.
	leader *leader
	// unproven says that the token on disk is another one: the datastore decides.
	unproven bool
	// alone makes etcd a cluster of this one member, whoever was in it before.
	alone bool
}

// etcd says whether the datastore is managed etcd, as the user sees it.
func (s *Server) etcd() bool {
	return s.Options.Bool("cluster-init") || s.Options.Bool("cluster-reset") || s.hasEtcdData() || s.told()
}

// Start brings the control plane up as far as its programs are running: the
// port is open, the API need not answer yet.
func (s *Server) Start(ctx context.Context) error {
	for _, step := range []func(context.Context) error{
		s.networks, s.join, s.secrets, s.certificates, s.listen, s.startDatastore, s.checkToken, s.startAPIServer, s.announce,
	} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Token is the full token with which this server's own node joins.
func (s *Server) Token() string { return tokenLine(s.pki.server.PEM, "node", s.agentSecret) }

func (s *Server) networks(context.Context) error {
	_, cidr, err := net.ParseCIDR(s.Options.First("service-cidr"))
	if err != nil {
		return fmt.Errorf("invalid service-cidr %s: %w", s.Options.First("service-cidr"), err)
	}
	if _, _, err := net.ParseCIDR(s.Options.First("cluster-cidr")); err != nil {
		return fmt.Errorf("invalid cluster-cidr %s: %w", s.Options.First("cluster-cidr"), err)
	}
	s.serviceCIDR, s.domain = cidr, s.Options.String("cluster-domain")
	if s.dns = s.Options.First("cluster-dns"); s.dns == "" {
		s.dns = nth(cidr, 10).String()
	}
	if net.ParseIP(s.dns) == nil {
		return fmt.Errorf("invalid cluster-dns address %s", s.dns)
	}
	return nil
}

// nth is the nth address of a network.
func nth(network *net.IPNet, n byte) net.IP {
	ip := append(net.IP{}, network.IP...)
	ip[len(ip)-1] += n
	return ip
}

// listen opens port 6443 and the join protocol.
func (s *Server) listen(ctx context.Context) error {
	s.supervisor = &supervisor.Supervisor{
		Data: s.Data, NodeName: s.ID.Name, ServerCA: s.pki.server, ClientCA: s.pki.client,
		Config: s.shared(), Etcd: s.etcd(),
	}
	cert, err := s.servingCertificate()
	if err != nil {
		return err
	}
	s.supervisor.SetCertificate(cert)
	if err := s.supervisor.Listen(ctx, fmt.Sprintf(":%d", layout.SupervisorPort)); err != nil {
		return err
	}
	s.supervisor.Open()
	return nil
}

// Wait returns when the API server answers and what the rest of the cluster
// needs first is in it.
func (s *Server) Wait(ctx context.Context) error {
	client, err := cluster.Connect(s.Data.Cred("admin.kubeconfig"))
	if err != nil {
		return err
	}
	s.client = client
	logged := false
	err = cluster.WaitReady(ctx, client, func(err error) {
		if !logged {
			logrus.Infof("Polling for API server readiness: GET /readyz failed: %v", err)
			logged = true
		}
	})
	if err != nil {
		return fmt.Errorf("failed to wait for API server to become ready: %w", err)
	}
	proxy, err := s.proxy()
	if err != nil {
		return err
	}
	s.supervisor.SetProxy(proxy)
	if err := cluster.Advertise(ctx, client, s.ID.Name, s.advertised(), layout.SupervisorPort); err != nil {
		return err
	}
	if err := cluster.Grant(ctx, client); err != nil {
		return err
	}
	if err := s.startControllers(ctx); err != nil {
		return err
	}
	s.supervisor.SetCore(core{client, s})
	logrus.Info("ETCD server is now running")
	logrus.Info("Kube API server is now running")
	return nil
}

// Ready makes the supervisor say so; call it after the service is up.
func (s *Server) Ready() { s.supervisor.SetReady() }

// Control runs the controllers of k3s until ctx ends.
func (s *Server) Control(ctx context.Context) {
	go cluster.Initialise(ctx, s.client)
	go func() {
		if err := s.ownNode(ctx); err != nil && ctx.Err() == nil {
			logrus.Errorf("Setting up node %s: %v", s.ID.Name, err)
		}
	}()
	go s.keepCertificate(ctx)
	if s.etcd() {
		go s.keepMembers(ctx)
	}
	go s.deploy(ctx)
}

// ownNode labels this server's Node, and records its password: at the start
// there was no API to keep it in.
func (s *Server) ownNode(ctx context.Context) error {
	if err := cluster.LabelServer(ctx, s.client, s.ID.Name, s.etcd()); err != nil {
		return err
	}
	if s.etcd() {
		if err := s.tellMember(ctx); err != nil {
			return err
		}
	}
	password, err := host.Password()
	if err != nil {
		return err
	}
	if err := cluster.VerifyNode(ctx, s.client, s.ID.Name, password); err != nil {
		return err
	}
	node, err := s.client.CoreV1().Nodes().Get(ctx, s.ID.Name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	return cluster.OwnPassword(ctx, s.client, node)
}

func (s *Server) advertised() string {
	if a := s.Options.String("advertise-address"); a != "" {
		return a
	}
	if external := s.ID.ExternalIPs(); external != "" {
		first, _, _ := strings.Cut(external, ",")
		return first
	}
	return s.ID.IP().String()
}
