package server

import (
	"context"
	"errors"
	"os"
	"strings"

	"github.com/gpuctl/gpuctl/e2e/lab/standin/k3s/config"
	"github.com/gpuctl/gpuctl/e2e/lab/standin/k3s/files"
	"github.com/gpuctl/gpuctl/e2e/lab/standin/k3s/supervisor"
	"github.com/gpuctl/gpuctl/e2e/lab/standin/k3s/token"
)

var errOtherToken = errors.New("preparing server: failed to bootstrap cluster data: failed to reconcile with local datastore: " +
	"bootstrap data already found and encrypted with different token")

// secrets settles the token of servers and the one of agents.
func (s *Server) secrets(context.Context) error {
	given, err := TokenOption(s.Options, "token")
	if err != nil {
		return err
	}
	s.secret, err = secretOf(given)
	if err != nil {
		return err
	}
	known := supervisor.Secret(s.Data, "server")
	switch {
	case s.secret == "" && known != "":
		s.secret = known
	case s.secret == "":
		s.secret = token.NewSecret()
	case known != "" && known != s.secret && !s.hasEtcdData():
		return errOtherToken
	case known != "" && known != s.secret:
		s.unproven = true // another server may have changed it
	}
	agent, err := TokenOption(s.Options, "agent-token")
	if err != nil {
		return err
	}
	if s.agentSecret, err = secretOf(agent); err != nil {
		return err
	}
	if s.agentSecret == "" {
		s.agentSecret = s.secret
	}
	return supervisor.WritePasswd(s.Data, s.secret, s.agentSecret)
}

// TokenOption is the value of a token option, or the content of the file that
// its -file option names.
func TokenOption(o *config.Options, name string) (string, error) {
	if t := o.String(name); t != "" {
		return t, nil
	}
	file := o.String(name + "-file")
	if file == "" {
		return "", nil
	}
	text, err := os.ReadFile(file)
	return strings.TrimSpace(string(text)), err
}

func secretOf(text string) (string, error) {
	if text == "" {
		return "", nil
	}
	t, err := token.Parse(text)
	return t.Secret, err
}

func tokenLine(ca []byte, user, secret string) string { return token.Format(ca, user, secret) }

// writeTokens writes the token files and says where they are.
func (s *Server) writeTokens() error {
	path := s.Data.Server("token")
	if err := files.Write(path, []byte(tokenLine(s.pki.server.PEM, "server", s.secret)+"\n"), 0o600); err != nil {
		return err
	}
	if err := files.Link(path, s.Data.Server("node-token")); err != nil {
		return err
	}
	if s.agentSecret == s.secret {
		return files.Link(path, s.Data.Server("agent-token"))
	}
	if err := os.RemoveAll(s.Data.Server("agent-token")); err != nil {
		return err
	}
	line := tokenLine(s.pki.server.PEM, "node", s.agentSecret) + "\n"
	return files.Write(s.Data.Server("agent-token"), []byte(line), 0o600)
}
