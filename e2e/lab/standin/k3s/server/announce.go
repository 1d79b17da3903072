package server

import (
	"context"
	"fmt"
	"os"
	"os/user"
	"strconv"

	"github.com/gpuctl/gpuctl/e2e/lab/standin/k3s/files"
	"github.com/gpuctl/gpuctl/e2e/lab/standin/k3s/layout"
	"github.com/gpuctl/gpuctl/e2e/lab/standin/k3s/pki"
	"github.com/sirupsen/logrus"
)

// announce writes the tokens and the kubeconfig and says where they are. That
// happens before datastore and API are up.
func (s *Server) announce(context.Context) error {
	if err := s.writeTokens(); err != nil {
		return err
	}
	url := fmt.Sprintf("https://%s:%d", s.advertised(), layout.SupervisorPort)
	logrus.Infof("Server node token is available at %s", s.Data.Server("token"))
	logrus.Infof("To join server node to cluster: k3s server -s %s -t ${SERVER_NODE_TOKEN}", url)
	logrus.Infof("Agent node token is available at %s", s.Data.Server("agent-token"))
	logrus.Infof("To join agent node to cluster: k3s agent -s %s -t ${AGENT_NODE_TOKEN}", url)
	return s.writeKubeconfig()
}

func (s *Server) writeKubeconfig() error {
	path := s.Options.String("write-kubeconfig")
	if path == "" {
		path = layout.Kubeconfig
	}
	mode := os.FileMode(0o600)
	if text := s.Options.String("write-kubeconfig-mode"); text != "" {
		parsed, err := strconv.ParseUint(text, 8, 32)
		if err != nil {
			logrus.Errorf("Failed to set %s to mode %s: %v", path, text, err)
		} else {
			mode = os.FileMode(parsed)
		}
	}
	err := pki.AdminKubeconfig(path, "https://127.0.0.1:6443", s.Data.TLS("server-ca.crt"),
		s.Data.TLS("client-admin.crt"), s.Data.TLS("client-admin.key"), mode)
	if err != nil {
		return err
	}
	if group := s.Options.String("write-kubeconfig-group"); group != "" {
		if err := chgrp(path, group); err != nil {
			logrus.Errorf("Failed to set group of %s to %s: %v", path, group, err)
		}
	}
	if path != layout.Kubeconfig {
		if err := files.Link(path, layout.Kubeconfig); err != nil {
			return err
		}
	}
	logrus.Infof("Wrote kubeconfig %s", path)
	logrus.Infof("Run: k3s kubectl")
	return nil
}

func chgrp(path, group string) error {
	id, err := strconv.Atoi(group)
	if err != nil {
		g, err := user.LookupGroup(group)
		if err != nil {
			return err
		}
		if id, err = strconv.Atoi(g.Gid); err != nil {
			return err
		}
	}
	return os.Chown(path, -1, id)
}
