package supervisor

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"time"

	"github.com/gpuctl/gpuctl/e2e/lab/standin/k3s/files"
	"github.com/gpuctl/gpuctl/e2e/lab/standin/k3s/token"
)

var errCoreNotReady = errors.New("runtime core not ready")

func (s *Supervisor) ping(w http.ResponseWriter, _ *http.Request) { text(w, []byte("pong")) }

func (s *Supervisor) cacerts(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain")
	w.Write(s.ServerCA.PEM)
}

func (s *Supervisor) clientCA(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain")
	w.Write(s.ClientCA.PEM)
}

func (s *Supervisor) config(w http.ResponseWriter, _ *http.Request) { writeJSON(w, s.Config) }

func (s *Supervisor) readyz(w http.ResponseWriter, r *http.Request) {
	if !s.ready.Load() {
		s.refuse(w, r, http.StatusServiceUnavailable, errCoreNotReady)
		return
	}
	text(w, []byte("ok"))
}

func (s *Supervisor) apiServers(w http.ResponseWriter, r *http.Request) {
	s.withCore(w, r, func(ctx context.Context, c Core) (any, error) { return c.APIServers(ctx) })
}

// connect is where k3s opens its tunnel to an agent. The stand-in has none:
// its API server reaches kubelets directly.
func (s *Supervisor) connect(w http.ResponseWriter, r *http.Request) {
	s.refuse(w, r, http.StatusBadRequest, errors.New("the stand-in has no tunnel"))
}

func (s *Supervisor) serverBootstrap(w http.ResponseWriter, r *http.Request) {
	if !s.Etcd {
		s.refuse(w, r, http.StatusBadRequest, errors.New("etcd disabled"))
		return
	}
	data, err := ReadBootstrap(s.Data)
	if err != nil {
		s.refuse(w, r, http.StatusInternalServerError, err)
		return
	}
	writeJSON(w, data)
}

func (s *Supervisor) encryptStatus(w http.ResponseWriter, _ *http.Request) {
	enabled := files.Exists(s.Data.Cred("encryption-config.json"))
	writeJSON(w, map[string]any{"enable": enabled, "hashmatch": true})
}

// putToken changes the server token: `k3s token rotate`.
func (s *Supervisor) putToken(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPut {
		s.refuse(w, r, http.StatusMethodNotAllowed, errors.New("method not allowed"))
		return
	}
	var body struct {
		NewToken string `json:"newToken"`
	}
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil || body.NewToken == "" {
		s.refuse(w, r, http.StatusBadRequest, errors.New("new token is missing"))
		return
	}
	old, node := Secret(s.Data, "server"), Secret(s.Data, "node")
	if node == old {
		node = body.NewToken
	}
	core := s.core.Load()
	if core == nil {
		s.refuse(w, r, http.StatusServiceUnavailable, errCoreNotReady)
		return
	}
	err := (*core).RotateToken(r.Context(), old, body.NewToken)
	if err == nil {
		err = WritePasswd(s.Data, body.NewToken, node)
	}
	if err == nil {
		line := token.Format(s.ServerCA.PEM, "server", body.NewToken) + "\n"
		err = files.Write(s.Data.Server("token"), []byte(line), 0o600)
	}
	if err != nil {
		s.refuse(w, r, http.StatusInternalServerError, err)
	}
}

func (s *Supervisor) dbInfo(w http.ResponseWriter, r *http.Request) {
	if !s.Etcd {
		s.refuse(w, r, http.StatusBadRequest, errors.New("etcd datastore disabled"))
		return
	}
	s.withCore(w, r, func(ctx context.Context, c Core) (any, error) {
		members, err := c.Members(ctx)
		return map[string]any{"members": members}, err
	})
}

// withCore answers with what ask finds, or 503 as long as there is no core.
func (s *Supervisor) withCore(w http.ResponseWriter, r *http.Request, ask func(context.Context, Core) (any, error)) {
	core := s.core.Load()
	if core == nil {
		s.refuse(w, r, http.StatusServiceUnavailable, errCoreNotReady)
		return
	}
	answer, err := ask(r.Context(), *core)
	if err != nil {
		s.refuse(w, r, http.StatusInternalServerError, err)
		return
	}
	writeJSON(w, answer)
}

func writeJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(v)
}

func text(w http.ResponseWriter, body []byte) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Write(body)
}

// BootstrapFile is one file that a joining server gets from the first.
type BootstrapFile struct {
	Timestamp time.Time
	Content   []byte
}

// ReadBootstrap collects the files that all servers of a cluster share.
func ReadBootstrap(data interface{ TLS(...string) string }) (map[string]BootstrapFile, error) {
	all := map[string]BootstrapFile{}
	for name, path := range BootstrapPaths() {
		file := data.TLS(path)
		content, err := os.ReadFile(file)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		info, err := os.Stat(file)
		if err != nil {
			return nil, err
		}
		all[name] = BootstrapFile{info.ModTime(), content}
	}
	return all, nil
}

// BootstrapPaths are the shared files below server/tls by the name they have
// in the bootstrap data.
func BootstrapPaths() map[string]string {
	return map[string]string{
		"ServerCA": "server-ca.crt", "ServerCAKey": "server-ca.key",
		"ClientCA": "client-ca.crt", "ClientCAKey": "client-ca.key",
		"ETCDServerCA": "etcd/server-ca.crt", "ETCDServerCAKey": "etcd/server-ca.key",
		"ETCDPeerCA": "etcd/peer-ca.crt", "ETCDPeerCAKey": "etcd/peer-ca.key",
		"RequestHeaderCA": "request-header-ca.crt", "RequestHeaderCAKey": "request-header-ca.key",
		"ServiceKey": "service.key", "ServiceCurrentKey": "service.current.key",
		"EncryptionConfig": "../cred/encryption-config.json",
		"IPSECKey":         "../cred/ipsec.psk",
	}
}
