//go:build unix

package bench

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/gpuctl/gpuctl/charts"
)

// api imitates the API server of a scene as far as a run without changes asks it.
type api struct {
	address    string
	kubeconfig string
	server     *http.Server
}

func startAPI(s scene) (*api, error) {
	certificate, key, err := identity()
	if err != nil {
		return nil, err
	}
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return nil, err
	}
	mux, err := s.answers()
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	encode := base64.StdEncoding.EncodeToString
	a := &api{address: l.Addr().String(), server: &http.Server{
		Handler: mux, ReadHeaderTimeout: time.Minute, ErrorLog: log.New(io.Discard, "", 0),
		TLSConfig: &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}, ClientAuth: tls.RequireAnyClientCert},
	}}
	a.kubeconfig = fmt.Sprintf(`apiVersion: v1
kind: Config
clusters: [{name: default, cluster: {server: "https://127.0.0.1:6443", certificate-authority-data: %s}}]
contexts: [{name: default, context: {cluster: default, user: default}}]
current-context: default
users: [{name: default, user: {client-certificate-data: %s, client-key-data: %s}}]`, encode(certificate), encode(certificate), encode(key))
	go func() { _ = a.server.ServeTLS(l, "", "") }() // ends with close
	return a, nil
}

func (a *api) close() error {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := a.server.Shutdown(ctx); !errors.Is(err, context.Canceled) {
		return err
	}
	return a.server.Close()
}

// identity is one certificate for everything: CA, server and client.
func identity() (certificate, key []byte, err error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		return nil, nil, err
	}
	text, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return nil, nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: text}), nil
}

// object is a JSON object.
type object = map[string]any

func (s scene) answers() (http.Handler, error) {
	release, err := s.release()
	if err != nil {
		return nil, err
	}
	list := func(version, kind string, items ...any) object {
		return object{"apiVersion": version, "kind": kind, "metadata": object{"resourceVersion": "1"}, "items": items}
	}
	var nodes []any
	for i := range s.machines {
		nodes = append(nodes, s.node(i))
	}
	policy := object{
		"apiVersion": "nvidia.com/v1", "kind": "ClusterPolicy", "metadata": object{"name": "cluster-policy"},
		"status": object{"state": "ready", "conditions": []any{object{"type": "Ready", "status": "True", "reason": "Reconciled"}}},
	}
	all := map[string]object{
		"/version":                            {"gitVersion": s.set.K3s.Version, "major": "1", "minor": "36"},
		"/api/v1/nodes":                       list("v1", "NodeList", nodes...),
		"/api/v1/pods":                        list("v1", "PodList"),
		"/apis/nvidia.com/v1/clusterpolicies": list("nvidia.com/v1", "ClusterPolicyList", policy),
		"/api/v1/secrets":                     list("v1", "SecretList", release),
		"/api/v1/namespaces/" + s.set.Operator.Namespace + "/secrets": list("v1", "SecretList", release),
	}
	mux := http.NewServeMux()
	for path, body := range all {
		text, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write(text) // the client may have gone
		})
	}
	return mux, nil
}

// node is a proven node with the bulk of a real one: labels and images.
func (s scene) node(i int) object {
	m := s.machines[i]
	proof, _ := json.Marshal(object{"time": "2026-11-30T10:00:00Z", "uuids": m.uuids, "driver": "580.95.05", "image": "synthetic"})
	labels := object{"kubernetes.io/hostname": m.name, "kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux"}
	if i == 0 {
		labels["node-role.kubernetes.io/control-plane"] = "true"
	}
	for k := range 60 {
		labels[fmt.Sprintf("feature.node.kubernetes.io/cpu-cpuid.FEATURE%d", k)] = "true"
	}
	var images []any
	for k := range 20 {
		digest := strings.Repeat(fmt.Sprintf("%04x", i*20+k), 16)
		images = append(images, object{"names": []string{fmt.Sprintf("registry.example.com/synthetic/image-%d@sha256:%s", k, digest)}, "sizeBytes": 123456789})
	}
	gpus := object{"cpu": "32", "memory": "247683652Ki", "pods": "110", "nvidia.com/gpu": "2"}
	return object{
		"metadata": object{"name": m.name, "uid": "uid-" + m.name, "creationTimestamp": "2026-11-30T09:00:00Z", "labels": labels,
			"annotations": object{"gpuctl.dev/proven": string(proof)}},
		"spec": object{"podCIDR": fmt.Sprintf("10.42.%d.0/24", i%256)},
		"status": object{
			"capacity": gpus, "allocatable": gpus, "images": images,
			"addresses":  []any{object{"type": "InternalIP", "address": m.ip}, object{"type": "Hostname", "address": m.name}},
			"conditions": []any{object{"type": "Ready", "status": "True", "reason": "KubeletReady", "lastTransitionTime": "2026-11-30T09:01:00Z"}},
			"nodeInfo":   object{"kubeletVersion": s.set.K3s.Version, "containerRuntimeVersion": "containerd://2.1.5-k3s1"},
		},
	}
}

// release is Helm's record of the GPU Operator as wanted, with the bulk of a real one.
func (s scene) release() (object, error) {
	values, chart := s.operator()
	bulk := make([]byte, 48<<10) // a real record is about that long when compressed
	rand.Read(bulk)
	record, err := json.Marshal(object{
		"name": chart, "namespace": s.set.Operator.Namespace, "version": 1, "config": values,
		"info":     object{"status": "deployed", "first_deployed": "2026-11-30T09:30:00Z", "last_deployed": "2026-11-30T09:30:00Z", "description": "Install complete"},
		"chart":    object{"metadata": object{"name": s.set.Operator.Chart, "version": s.set.Operator.Version, "apiVersion": "v2"}},
		"manifest": base64.StdEncoding.EncodeToString(bulk),
	})
	if err != nil {
		return nil, err
	}
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	if _, err := z.Write(record); err != nil {
		return nil, err
	}
	if err := z.Close(); err != nil {
		return nil, err
	}
	inner := base64.StdEncoding.EncodeToString(packed.Bytes())
	return object{
		"metadata": object{"name": "sh.helm.release.v1." + chart + ".v1", "namespace": s.set.Operator.Namespace,
			"labels": object{"owner": "helm", "name": chart, "status": "deployed", "version": "1"}},
		"type": "helm.sh/release.v1",
		"data": object{"release": base64.StdEncoding.EncodeToString([]byte(inner))},
	}, nil
}

func (s scene) operator() (map[string]any, string) {
	r, _ := s.set.OperatorRelease(charts.Want{}, nil)
	return r.Values, r.Name
}
