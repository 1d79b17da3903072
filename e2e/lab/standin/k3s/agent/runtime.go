package agent

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/gpuctl/gpuctl/e2e/lab/standin/k3s/containerd"
	"github.com/gpuctl/gpuctl/e2e/lab/standin/k3s/files"
	"github.com/gpuctl/gpuctl/e2e/lab/standin/k3s/layout"
	"github.com/gpuctl/gpuctl/e2e/lab/standin/k3s/process"
	"github.com/sirupsen/logrus"
)

// startContainerd writes containerd's files and starts it.
func (n *Node) startContainerd(ctx context.Context) error {
	registries, err := containerd.ReadRegistries(n.Options.String("private-registry"))
	if err != nil {
		return err
	}
	if err := n.dirs(); err != nil {
		return err
	}
	settings := containerd.Settings{
		AgentDir:       n.Data.Agent(),
		Address:        layout.ContainerdSock,
		State:          layout.ContainerdRun,
		BinDir:         n.Data.CNI(),
		PauseImage:     n.pauseImage(),
		Snapshotter:    n.Options.String("snapshotter"),
		DefaultRuntime: n.Options.String("default-runtime"),
		SystemdCgroup:  n.Env.Systemd,
		Runtimes:       containerd.FindRuntimes("/", os.Getenv("PATH")),
		Auths:          registries.Credentials(),
		KeepOOMScore:   n.Env.NoResource,
	}
	if err := settings.Write(); err != nil {
		return err
	}
	noDefault := n.Options.Bool("disable-default-registry-endpoint")
	if err := containerd.WriteHosts(n.Data.Agent(), registries, noDefault); err != nil {
		return err
	}
	crictl := fmt.Sprintf("runtime-endpoint: unix://%s\n", layout.ContainerdSock)
	if err := files.Write(n.Data.Agent("etc/crictl.yaml"), []byte(crictl), 0o600); err != nil {
		return err
	}
	path := n.Data.Agent("containerd/containerd.log")
	logrus.Infof("Logging containerd to %s", path)
	log, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	return n.Group.Run(ctx, process.Child{
		Name: "containerd", Args: []string{"-c", settings.Path()}, Log: log, Grace: 2 * time.Second,
	})
}

func (n *Node) dirs() error {
	for _, d := range []struct {
		path string
		mode os.FileMode
	}{
		{n.Data.Agent(), 0o700}, {n.Data.Agent("etc"), 0o700}, {n.Data.Agent("containerd"), 0o700},
		{n.Data.Agent("etc/containerd"), 0o700}, {n.Data.Agent("etc/cni/net.d"), 0o700},
		{n.Data.Agent("pod-manifests"), 0o750}, {layout.RunDir, 0o711}, {layout.ContainerdRun, 0o711},
	} {
		if err := files.Dir(d.path, d.mode); err != nil {
			return err
		}
	}
	return nil
}

func (n *Node) pauseImage() string {
	image := n.Options.String("pause-image")
	if registry := n.cluster.SystemDefaultRegistry; registry != "" {
		return registry + "/" + image
	}
	return image
}

// waitContainerd waits until the socket takes connections and the images
// beside it are imported.
func (n *Node) waitContainerd(ctx context.Context) error {
	for {
		conn, err := net.Dial("unix", layout.ContainerdSock)
		if err == nil {
			conn.Close()
			break
		}
		if !sleep(ctx, 100*time.Millisecond) {
			return context.Cause(ctx)
		}
	}
	logrus.Info("containerd is now running")
	n.importImages(ctx)
	return nil
}

// archives are the endings of image archives; containerd itself unpacks them.
var archives = [...]string{".tar", ".tar.gz", ".tgz", ".tar.zst", ".tzst"}

// importImages imports the archives in agent/images. One that is broken is
// logged and the rest goes on.
func (n *Node) importImages(ctx context.Context) {
	entries, err := os.ReadDir(n.Data.Agent("images"))
	if err != nil {
		return // no such directory: nothing to import
	}
	for _, e := range entries {
		for _, ending := range archives {
			if strings.HasSuffix(e.Name(), ending) {
				importArchive(ctx, n.Data.Agent("images", e.Name()))
				break
			}
		}
	}
}

func importArchive(ctx context.Context, file string) {
	logrus.Infof("Importing images from %s", file)
	start := time.Now()
	self, err := os.Executable()
	if err == nil {
		var out []byte
		out, err = exec.CommandContext(ctx, filepath.Join(filepath.Dir(self), "ctr"), "-a", layout.ContainerdSock,
			"-n", "k8s.io", "images", "import", "--label", "io.cri-containerd.pinned=pinned", file).CombinedOutput()
		if err != nil {
			err = fmt.Errorf("%w: %s", err, strings.TrimSpace(string(out)))
		}
	}
	if err != nil {
		logrus.Errorf("Failed to process image event: failed to import %s: %v", file, err)
		return
	}
	logrus.Infof("Imported images from %s in %s", file, time.Since(start))
}
