package k3s

import (
	"context"
	"time"

	"github.com/gpuctl/gpuctl/bootstrap/remote"
)

// LeavingFile is a drop-in, until the next boot, by which a unit that ends stays ended.
func LeavingFile(unit string) string {
	return "/run/systemd/system/" + unit + ".service.d/50-gpuctl-leaving.conf"
}

// KeepEnded makes k3s on a server stay ended once it ends. When the member of a
// server is removed its k3s ends, is started again by systemd, and joins anew
// (tombstone, k3s pkg/etcd/etcd.go). A later install takes the order back.
func KeepEnded(ctx context.Context, on remote.Runner) error {
	file := LeavingFile("k3s")
	_, err := on.Run(ctx, remote.Cmd{
		Name: "keep k3s from starting again", Sudo: true, Timeout: 30 * time.Second, Args: []string{file},
		Script: `set -eu
mkdir -p "${1%/*}"
printf '[Service]\nRestart=no\n' >"$1"
systemctl daemon-reload
[ "$(systemctl show -p Restart k3s.service)" = Restart=no ]
`,
	})
	return err
}
