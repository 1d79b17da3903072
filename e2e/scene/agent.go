package scene

import (
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// Agent starts an SSH agent that holds the lab's key, for gpuctl to use. It is
// how a jump host gets a key: OpenSSH gives a key file of the command line to
// the last machine alone.
func (s *Scene) Agent() {
	s.t.Helper()
	dir, err := os.MkdirTemp("", "agent-") // a socket's path must be short
	if err != nil {
		s.t.Fatal(err)
	}
	socket := "SSH_AUTH_SOCK=" + filepath.Join(dir, "s")
	agent := exec.Command("ssh-agent", "-D", "-a", filepath.Join(dir, "s"))
	if err := agent.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		_ = agent.Process.Kill()
		_ = agent.Wait()
		if err := os.RemoveAll(dir); err != nil {
			s.t.Error(err)
		}
	})
	s.Until(10*time.Second, "the SSH agent", func() string {
		add := exec.Command("ssh-add", "-q", s.Lab.Key())
		add.Env = append(os.Environ(), socket)
		if out, err := add.CombinedOutput(); err != nil {
			return err.Error() + ": " + string(out)
		}
		return ""
	})
	s.Env = append(s.Env, socket)
}
