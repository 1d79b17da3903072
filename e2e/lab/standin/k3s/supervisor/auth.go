package supervisor

import (
	"crypto/subtle"
	"crypto/x509"
	"encoding/csv"
	"errors"
	"net/http"
	"os"
	"slices"
	"strings"

	"github.com/gpuctl/gpuctl/e2e/lab/standin/k3s/files"
	"github.com/gpuctl/gpuctl/e2e/lab/standin/k3s/layout"
	"github.com/gpuctl/gpuctl/e2e/lab/standin/k3s/pki"
	"github.com/sirupsen/logrus"
)

// Who may ask for what.
const (
	roleAgent      = "k3s:agent"
	roleServer     = "k3s:server"
	groupNodes     = "system:nodes"
	groupMasters   = "system:masters"
	groupBootstrap = "system:bootstrappers:k3s:default-node-token"
)

var (
	errForbidden     = errors.New("forbidden")
	errNotAuthorized = errors.New("not authorized")
)

// only lets a request through whose login has one of the groups. Without any
// login the answer is 403, with a wrong one 401.
func (s *Supervisor) only(h http.HandlerFunc, groups ...string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		have, tried := s.login(r)
		switch {
		case have == nil && tried:
			logrus.Errorf("Failed to authenticate request from %s: invalid username/password combination", r.RemoteAddr)
			s.refuse(w, r, http.StatusUnauthorized, errNotAuthorized)
		case !slices.ContainsFunc(groups, func(g string) bool { return slices.Contains(have, g) }):
			s.refuse(w, r, http.StatusForbidden, errForbidden)
		default:
			h(w, r)
		}
	})
}

// login returns the groups of the request's login, nil if there is none.
// tried says that credentials other than a certificate were given.
func (s *Supervisor) login(r *http.Request) (groups []string, tried bool) {
	if user, password, ok := r.BasicAuth(); ok {
		return s.password(user, password), true
	}
	if bearer, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); ok {
		if core := s.core.Load(); core != nil && (*core).Bootstrap(r.Context(), bearer) {
			return []string{groupBootstrap}, true
		}
		return nil, true
	}
	if cert := verified(r, s.ClientCA.PEM); cert != nil {
		return cert.Subject.Organization, false
	}
	return nil, false
}

func (s *Supervisor) password(user, password string) []string {
	for _, line := range readPasswd(s.Data) {
		if line[1] == user && password != "" && subtle.ConstantTimeCompare([]byte(line[0]), []byte(password)) == 1 {
			return []string{line[3]}
		}
	}
	return nil
}

// readPasswd reads server/cred/passwd: password, user, user, role.
func readPasswd(data layout.Data) [][]string {
	f, err := os.Open(data.Cred("passwd"))
	if err != nil {
		return nil
	}
	defer f.Close()
	lines := csv.NewReader(f)
	lines.FieldsPerRecord = 4
	all, err := lines.ReadAll()
	if err != nil {
		logrus.Errorf("Failed to read passwd file: %v", err)
	}
	return all
}

// Secret is the password of user ("server" or "node") on disk, empty on the
// first start.
func Secret(data layout.Data, user string) string {
	for _, line := range readPasswd(data) {
		if line[1] == user {
			return line[0]
		}
	}
	return ""
}

// WritePasswd writes the accounts of a server.
func WritePasswd(data layout.Data, server, node string) error {
	var b strings.Builder
	w := csv.NewWriter(&b)
	w.Write([]string{node, "node", "node", roleAgent})
	w.Write([]string{server, "server", "server", roleServer})
	w.Flush()
	return files.Write(data.Cred("passwd"), []byte(b.String()), 0o600)
}

// verified is the request's client certificate if the CA signed it.
func verified(r *http.Request, ca []byte) *x509.Certificate {
	if r.TLS == nil || len(r.TLS.PeerCertificates) == 0 {
		return nil
	}
	intermediates := x509.NewCertPool()
	for _, c := range r.TLS.PeerCertificates[1:] {
		intermediates.AddCert(c)
	}
	cert := r.TLS.PeerCertificates[0]
	_, err := cert.Verify(x509.VerifyOptions{
		Roots: pki.Pool(ca), Intermediates: intermediates,
		KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
	if err != nil {
		return nil
	}
	return cert
}
