//go:build lab

package e2e_test

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/gpuctl/gpuctl/bootstrap/remote"
	"github.com/gpuctl/gpuctl/bootstrap/sshconn"
	"github.com/gpuctl/gpuctl/bootstrap/sshconn/sshtest"
	"github.com/gpuctl/gpuctl/e2e/lab/machine"
)

// TestContractOnMachines: the connection keeps its contract against the OpenSSH
// of a machine, for every kind of user, under several login shells, and where
// sshd forbids forwarding.
func TestContractOnMachines(t *testing.T) {
	t.Parallel()
	s := stage.New(t, "contract")
	machines := s.Machines(
		machine.Spec{Name: "bash"},
		machine.Spec{Name: "fish", Shell: "/usr/bin/fish", SSHPort: 2222},
		machine.Spec{Name: "tcsh", Shell: "/bin/tcsh", SSHD: []string{"AllowTcpForwarding no"}},
	)
	for _, m := range machines {
		for _, user := range []string{"root", "ubuntu", "ops"} {
			t.Run(m.Name+"/"+user, func(t *testing.T) {
				sshtest.Contract(t, func(t *testing.T) remote.Host {
					c, err := sshconn.Dial(t.Context(), sshconn.Target{
						Name: m.Name, Host: m.IP, Port: m.Port, User: user, IdentityFile: s.Lab.Key(),
					}, sshconn.Options{
						ConfigFile: "none", KnownHosts: filepath.Join(t.TempDir(), "known_hosts"),
						SudoPassword: func(context.Context, sshconn.Info) (string, error) { return password, nil },
					})
					if err != nil {
						t.Fatal(err)
					}
					t.Cleanup(func() {
						if err := c.Close(); err != nil {
							t.Error(err)
						}
					})
					return c
				})
			})
		}
	}
}
