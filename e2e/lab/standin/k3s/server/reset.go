package server

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/gpuctl/gpuctl/e2e/lab/standin/k3s/files"
	"github.com/sirupsen/logrus"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/etcdutl/v3/snapshot"
	"go.uber.org/zap"
)

// ErrReset ends k3s after --cluster-reset.
var ErrReset = errors.New("Managed etcd cluster membership has been reset, restart without --cluster-reset flag now. " +
	"Backup and delete ${datadir}/server/db on each peer etcd server and rejoin the nodes")

// bootstrapKeys hold, in k3s, what servers share, encrypted by their token; here
// they say only which token that is. Source: k3s pkg/cluster/encrypt.go, storage.go.
const bootstrapKeys = "/bootstrap/"

func bootstrapKey(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return bootstrapKeys + hex.EncodeToString(sum[:])[:12]
}

// Reset makes etcd a cluster of this one server, with the data it has or those
// of a snapshot, and leaves it stopped. Source: k3s pkg/cluster/managed.go.
func (s *Server) Reset(ctx context.Context) error {
	from := s.Options.String("cluster-reset-restore-path")
	switch {
	case s.Options.String("server") != "":
		return errors.New("cannot perform cluster-reset while server URL is set - remove server from configuration before resetting")
	case from == "" && files.Exists(s.resetFlag()):
		return errors.New("Managed etcd cluster membership was previously reset, please remove the cluster-reset flag and start k3s normally. " +
			"If you need to perform another cluster reset, you must first manually delete the file at " + s.resetFlag())
	case !files.Exists(s.Data.Server("token")):
		return fmt.Errorf("%s does not exist, please pass --token to complete the restoration", s.Data.Server("token"))
	}
	for _, step := range []func(context.Context) error{s.networks, s.secrets, s.certificates} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	s.unproven = from != "" // a snapshot may be older than the token
	if from != "" {
		if err := s.restore(from); err != nil {
			return err
		}
	}
	s.alone = true
	if err := s.startDatastore(ctx); err != nil {
		return err
	}
	if err := s.checkToken(ctx); err != nil {
		return err
	}
	c, err := EtcdClient(s.Data)
	if err != nil {
		return err
	}
	defer c.Close()
	if _, err := c.Delete(ctx, "/registry/secrets/kube-system/"+s.ID.Name+".node-password.k3s"); err != nil {
		return err
	}
	return files.Write(s.resetFlag(), nil, 0o600)
}

func (s *Server) resetFlag() string { return s.Data.Server("db/reset-flag") }

// restore lays a snapshot where etcd's data are. One that is compressed is not
// found, as was seen with k3s v1.36.3.
func (s *Server) restore(from string) error {
	if strings.HasSuffix(from, ".zip") && filepath.IsAbs(from) {
		logrus.Infof("Decompressing etcd snapshot file: %s", from)
		return fmt.Errorf("open %s: no such file or directory", s.Data.Server("db/snapshots", from))
	}
	info, err := os.Stat(from)
	switch {
	case err != nil:
		return fmt.Errorf("etcd: snapshot path does not exist: %s", from)
	case info.IsDir():
		return fmt.Errorf("etcd: snapshot path must be a file, not a directory: %s", from)
	}
	now := time.Now().Unix()
	dir := s.Data.Server("db/etcd")
	if files.Exists(dir) {
		old := s.Data.Server(fmt.Sprintf("db/etcd-old-%d", now))
		if err := os.Rename(dir, old); err != nil {
			return err
		}
		logrus.Infof("Pre-restore etcd database moved to %s", old)
	}
	if err := files.Dir(s.Data.Server("db"), 0o700); err != nil {
		return err
	}
	name, peer := s.newName(), fmt.Sprintf("https://%s:2380", s.ID.IP())
	err = snapshot.NewV3(zap.NewNop()).Restore(snapshot.RestoreConfig{
		SnapshotPath: from, Name: name, OutputDataDir: dir, PeerURLs: []string{peer},
		InitialCluster: name + "=" + peer, InitialClusterToken: "etcd-cluster",
	})
	if err != nil {
		return err
	}
	if err := files.Write(filepath.Join(dir, "name"), []byte(name), 0o600); err != nil {
		return err
	}
	backup := s.Data.Server(fmt.Sprintf("tls-%d", now))
	logrus.Infof("Cluster reset: backing up certificates directory to %s", backup)
	return os.CopyFS(backup, os.DirFS(s.Data.TLS()))
}

// checkToken holds the token against the datastore's, once etcd answers, and
// takes away what an earlier reset left.
func (s *Server) checkToken(ctx context.Context) error {
	if !s.etcd() {
		return nil
	}
	c, err := EtcdClient(s.Data)
	if err != nil {
		return err
	}
	defer c.Close()
	var known *clientv3.GetResponse
	for known == nil {
		if known, err = c.Get(ctx, bootstrapKeys, clientv3.WithPrefix()); err != nil {
			if known = nil; !wait(ctx, 300*time.Millisecond) {
				return context.Cause(ctx)
			}
		}
	}
	mine := known.Count == 0
	for _, kv := range known.Kvs {
		mine = mine || string(kv.Key) == bootstrapKey(s.secret)
	}
	switch {
	case !mine && s.Options.Bool("cluster-reset"):
		return errors.New("no bootstrap data found in datastore - check server token value")
	case !mine:
		return errOtherToken
	case known.Count == 0:
		if _, err := c.Put(ctx, bootstrapKey(s.secret), s.ID.Name); err != nil {
			return err
		}
	}
	if s.Options.Bool("cluster-reset") {
		return nil
	}
	if err := os.Remove(s.resetFlag()); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// rotateToken makes another token the one of the datastore.
func (s *Server) rotateToken(ctx context.Context, old, secret string) error {
	if !s.etcd() {
		return nil
	}
	c, err := EtcdClient(s.Data)
	if err != nil {
		return err
	}
	defer c.Close()
	if _, err := c.Put(ctx, bootstrapKey(secret), s.ID.Name); err != nil {
		return err
	}
	if old == secret {
		return nil
	}
	_, err = c.Delete(ctx, bootstrapKey(old))
	return err
}
