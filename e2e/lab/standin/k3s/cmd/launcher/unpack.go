package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/gpuctl/gpuctl/e2e/lab/standin/k3s/archive"
	"github.com/gpuctl/gpuctl/e2e/lab/standin/k3s/files"
	"github.com/sirupsen/logrus"
)

// links are names of the one program that is everything.
var links = [...]string{"kubectl", "k3s-server", "k3s-agent", "k3s-token", "k3s-etcd-snapshot", "k3s-secrets-encrypt",
	"k3s-certificate", "k3s-completion", "k3s-check-config", "etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler",
	"kubelet", "kube-proxy"}

// plugins are the CNI plugins that get a stable place.
var plugins = [...]string{"bandwidth", "bridge", "firewall", "host-local", "loopback", "portmap"}

// unpack makes sure that the archive lies in <data>/data/<hash>/bin, and
// returns that directory.
func unpack(data string) (bin string, err error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	a, err := archive.Find(self)
	if err != nil {
		return "", err
	}
	defer a.Close()
	dir := filepath.Join(data, "data", a.Hash)
	bin = filepath.Join(dir, "bin")
	if files.Exists(bin) {
		return bin, nil
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return "", err
	}
	unlock, err := lock(filepath.Join(data, "data", ".lock"))
	if err != nil {
		return "", err
	}
	defer unlock()
	if files.Exists(bin) { // another process was faster
		return bin, nil
	}
	logrus.Infof("Preparing data dir %s", dir)
	tmp := dir + "-tmp"
	if err := os.RemoveAll(tmp); err != nil {
		return "", err
	}
	if err := fill(a, filepath.Join(tmp, "bin")); err != nil {
		return "", err
	}
	if err := os.Rename(tmp, dir); err != nil {
		return "", err
	}
	return bin, point(data, dir)
}

func fill(a *archive.Archive, bin string) error {
	if err := os.MkdirAll(bin, 0o755); err != nil {
		return err
	}
	if err := a.Unpack(bin); err != nil {
		return err
	}
	for _, name := range links {
		if err := os.Symlink("k3s", filepath.Join(bin, name)); err != nil {
			return err
		}
	}
	return nil
}

// point makes the links to the newest archive. A plugin of the user's own is
// left alone.
func point(data, dir string) error {
	current, previous := filepath.Join(data, "data", "current"), filepath.Join(data, "data", "previous")
	if old, err := os.Readlink(current); err == nil {
		if err := files.Link(old, previous); err != nil {
			return err
		}
	}
	if err := files.Link(dir, current); err != nil {
		return err
	}
	cni := filepath.Join(data, "data", "cni")
	if err := files.Dir(cni, 0o755); err != nil {
		return err
	}
	for _, name := range plugins {
		link := filepath.Join(cni, name)
		info, err := os.Lstat(link)
		if err == nil && info.Mode()&fs.ModeSymlink == 0 {
			continue
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if err := files.Link(filepath.Join(dir, "bin", name), link); err != nil {
			return err
		}
	}
	return nil
}

func lock(path string) (unlock func() error, err error) {
	logrus.Infof("Acquiring lock file %s", path)
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		return nil, err
	}
	return f.Close, nil
}
