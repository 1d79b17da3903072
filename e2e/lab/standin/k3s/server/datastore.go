package server

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/gpuctl/gpuctl/e2e/lab/standin/k3s/config"
	"github.com/gpuctl/gpuctl/e2e/lab/standin/k3s/files"
	"github.com/gpuctl/gpuctl/e2e/lab/standin/k3s/process"
	"github.com/sirupsen/logrus"
)

// startDatastore starts etcd. With cluster-init its files lie where k3s keeps
// those of managed etcd; without, etcd stands in for kine and its files lie
// beside empty ones with the names of sqlite's.
func (s *Server) startDatastore(ctx context.Context) error {
	dir, name := s.Data.Server("db/kine"), s.ID.Name
	if s.etcd() {
		var err error
		if dir, name, err = s.managedEtcd(); err != nil {
			return err
		}
	} else if err := s.sqliteFiles(); err != nil {
		return err
	}
	if err := files.Dir(dir, 0o700); err != nil {
		return err
	}
	peer := "https://127.0.0.1:2380"
	client := "https://127.0.0.1:2379"
	advertised := client
	if s.etcd() {
		peer = fmt.Sprintf("https://%s:2380", s.ID.IP())
		advertised = fmt.Sprintf("https://%s:2379", s.ID.IP())
		client += "," + advertised
	}
	initial, state, err := name+"="+peer, "new", error(nil)
	if s.leader != nil {
		if initial, err = s.addMember(ctx, name, peer); err != nil {
			return &shutdown{fmt.Errorf("etcd cluster join failed: %w", err)}
		}
		state = "existing"
	}
	tls := s.Data.TLS("etcd")
	flags := map[string]string{
		"name": name, "data-dir": dir,
		"listen-client-urls": client, "advertise-client-urls": advertised,
		"listen-peer-urls": peer, "initial-advertise-peer-urls": peer,
		"initial-cluster": initial, "initial-cluster-state": state,
		"heartbeat-interval": "500", "election-timeout": "5000",
		"listen-metrics-urls": "http://127.0.0.1:2381",
		"cert-file":           tls + "/server-client.crt", "key-file": tls + "/server-client.key",
		"trusted-ca-file": tls + "/server-ca.crt", "client-cert-auth": "true",
		"peer-cert-file": tls + "/peer-server-client.crt", "peer-key-file": tls + "/peer-server-client.key",
		"peer-trusted-ca-file": tls + "/peer-ca.crt", "peer-client-cert-auth": "true",
		"snapshot-count": "10000", "log-level": "error",
		"unsafe-no-fsync": "true", // a lab's disk is slow and its data worth nothing
	}
	if s.alone {
		flags["force-new-cluster"] = "true"
	}
	err = s.Group.Run(ctx, process.Child{
		Name: "etcd", Args: config.Extra(flags, s.Options.List("etcd-arg")), Grace: 2 * time.Second,
	})
	switch {
	case err != nil:
		return err
	case s.leader != nil:
		return s.awaitPromotion(ctx, peer)
	case s.alone:
		return s.move(ctx, peer)
	}
	return nil
}

func (s *Server) hasEtcdData() bool { return files.Exists(s.Data.Server("db/etcd/member/wal")) }

// managedEtcd prepares the directory of managed etcd and names the member.
func (s *Server) managedEtcd() (dir, name string, err error) {
	dir = s.Data.Server("db/etcd")
	for _, d := range []string{s.Data.Server("db"), dir, s.Data.Server("db/snapshots")} {
		if err := files.Dir(d, 0o700); err != nil {
			return "", "", err
		}
	}
	if err := s.migrate(); err != nil {
		return "", "", err
	}
	switch {
	case s.Options.Bool("cluster-reset"):
		logrus.Info("Starting etcd for new cluster, cluster-reset=true")
	case s.hasEtcdData():
		logrus.Info("Managed etcd cluster bootstrap already complete and initialized")
		logrus.Info("Starting etcd for existing cluster member")
	case s.leader != nil:
		logrus.Info("Starting etcd to join cluster")
	default:
		logrus.Info("Managed etcd cluster initializing")
		logrus.Info("Starting etcd for new cluster, cluster-reset=false")
	}
	file := filepath.Join(dir, "name")
	text, err := os.ReadFile(file)
	if err == nil {
		return dir, strings.TrimSpace(string(text)), nil
	}
	name = s.newName()
	return dir, name, files.Write(file, []byte(name), 0o600)
}

func (s *Server) newName() string {
	suffix := make([]byte, 4)
	rand.Read(suffix)
	return s.ID.Name + "-" + hex.EncodeToString(suffix)
}

// migrate makes managed etcd of what stands in for sqlite: k3s does so where
// cluster-init meets a sqlite database, and never the other way.
func (s *Server) migrate() error {
	from := s.Data.Server("db/kine/member")
	if s.hasEtcdData() || !files.Exists(from) {
		return nil
	}
	logrus.Info("Migrating content from sqlite to etcd")
	if err := os.Rename(from, s.Data.Server("db/etcd/member")); err != nil {
		return err
	}
	s.alone = true
	return os.Rename(s.Data.Server("db/state.db"), s.Data.Server("db/state.db.migrated"))
}

// sqliteFiles makes the files that show a sqlite datastore.
func (s *Server) sqliteFiles() error {
	if err := files.Dir(s.Data.Server("db"), 0o700); err != nil {
		return err
	}
	for _, name := range []string{"state.db", "state.db-wal", "state.db-shm"} {
		if path := s.Data.Server("db", name); !files.Exists(path) {
			if err := files.Write(path, []byte("SQLite format 3\x00"), 0o644); err != nil {
				return err
			}
		}
	}
	return nil
}
