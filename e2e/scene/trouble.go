package scene

import (
	"os"
	"path/filepath"
)

// tell logs what helps to understand a failure: what gpuctl said last, the end
// of the machines' journals, and the pods.
func (s *Scene) tell() {
	for _, run := range s.Runs() {
		for _, name := range []string{"events.jsonl", "debug.log"} {
			if data, err := os.ReadFile(filepath.Join(run, name)); err == nil && len(data) > 0 {
				s.t.Logf("%s of run %s:\n%s", name, filepath.Base(run), end(string(data), 25))
			}
		}
	}
	for _, m := range s.machines {
		out, err := s.TryExec(m, `systemctl --no-pager --no-legend list-units 'k3s*' --all
journalctl -q --no-pager -o short-precise -u k3s -u k3s-agent -n 25 2>/dev/null | cut -c1-300`)
		s.t.Logf("machine %s (%s): %v\n%s", m.Name, m.IP, err, out)
	}
	if s.server == nil {
		return
	}
	out, err := s.TryExec(s.server, `command -v k3s >/dev/null || exit 0
timeout 20 k3s kubectl get nodes -o wide
timeout 20 k3s kubectl get pods -A -o wide
timeout 20 k3s kubectl get events -A --field-selector type!=Normal | tail -n 20`)
	s.t.Logf("cluster: %v\n%s", err, out)
}
