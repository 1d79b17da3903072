package main

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/gpuctl/gpuctl/e2e/lab/standin/k3s/files"
	"github.com/gpuctl/gpuctl/e2e/lab/standin/k3s/layout"
	"github.com/sirupsen/logrus"
)

// certificateCommand is `k3s certificate rotate`: leaf certificates and their
// keys go, after a copy was made; the next start makes new ones.
func certificateCommand(args []string) error {
	if len(args) == 0 || args[0] != "rotate" {
		return errors.New("the lab's stand-in knows k3s certificate rotate")
	}
	flags := flag.NewFlagSet("certificate rotate", flag.ContinueOnError)
	data := flags.String("data-dir", layout.DefaultDataDir, "")
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	d := layout.Data(*data)
	now := time.Now().Unix()
	if files.Exists(d.TLS()) {
		if err := rotate(d.TLS(), d.Server(fmt.Sprintf("tls-%d", now)), "service."); err != nil {
			return err
		}
	}
	return rotate(d.Agent(), d.Agent(fmt.Sprintf("tls-%d", now)), "")
}

// rotate copies the certificates of a folder and deletes those that are not of
// a CA. Files whose name begins with keep stay.
func rotate(dir, backup, keep string) error {
	for _, service := range []string{"admin", "api-server", "controller-manager", "scheduler", "supervisor", "k3s-controller",
		"k3s-server", "cloud-controller", "etcd", "auth-proxy", "kubelet", "kube-proxy"} {
		logrus.Infof("Rotating certificates for %s", service)
	}
	var all []string
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if e.IsDir() && path != dir && slices.Contains([]string{"containerd", "images", "pod-manifests"}, e.Name()) || strings.HasPrefix(e.Name(), "tls-") {
			return filepath.SkipDir
		}
		if ext := filepath.Ext(path); !e.IsDir() && (ext == ".crt" || ext == ".key") {
			all = append(all, path)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, path := range all {
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		if err := files.Write(filepath.Join(backup, rel), content, 0o600); err != nil {
			return err
		}
		base := filepath.Base(path)
		if strings.Contains(base, "-ca.") || keep != "" && strings.HasPrefix(base, keep) {
			continue
		}
		if err := os.Remove(path); err != nil {
			return err
		}
	}
	logrus.Infof("Successfully backed up certificates to %s, please restart k3s server or agent to rotate certificates", backup)
	return nil
}
