package scene

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"strings"

	"github.com/gpuctl/gpuctl/e2e/lab/machine"
)

// EndState is what a cluster ended in, as facts by name: the files gpuctl owns
// with their modes and hashes, the starts of units, nodes with their UIDs, labels
// and taints, and Helm releases with their revisions. Labels of the GPU Operator's
// feature discovery are not among them.
type EndState map[string]string

// owned prints a line per file gpuctl owns and per unit of k3s. $1 is replaced
// in the content before it is hashed, so that files of two machines compare; what
// each cluster draws anew (tokens, its id, host keys) has a line of its own.
const owned = `
{
  find /etc/modules-load.d /etc/sysctl.d /etc/apt /usr/share/keyrings /etc/rancher /var/lib/rancher/k3s/agent/etc -name '*gpuctl*' -type f
  ls -d /etc/rancher/k3s/registries.yaml /usr/local/bin/k3s* /etc/systemd/system/k3s*.service /etc/systemd/system/k3s*.service.env /etc/systemd/system/k3s*.service.d/*
} 2>/dev/null | sort -u | while read -r f; do
  case $f in
    *-token | */gpuctl.id | */gpuctl.known_hosts) sum=own ;;
    *) sum=$(sed -e '%s' "$f" | sha256sum | cut -c1-16) ;;
  esac
  echo "file $f|$(stat -c '%%a %%u:%%g' "$f") $sum"
  case $f in *-token | */gpuctl.id | */gpuctl.known_hosts) echo "token $f|$(sha256sum <"$f" | cut -c1-16)" ;; esac
done
for unit in k3s k3s-agent; do
  [ -e "/etc/systemd/system/$unit.service" ] || continue
  echo "unit $unit|$(systemctl is-enabled "$unit") $(systemctl is-active "$unit")"
  echo "start $unit|$(systemctl show -P ExecMainStartTimestampMonotonic "$unit")"
done
`

// EndState reads the state of the scene's cluster.
func (s *Scene) EndState() EndState {
	s.t.Helper()
	state := EndState{}
	var subst []string
	for i, m := range s.machines {
		subst = append(subst, fmt.Sprintf("s/%s\\b/address-%d/g;s/%s\\b/name-%d/g", regexp.QuoteMeta(m.IP), i, m.Name, i))
	}
	for i, m := range s.machines {
		s.addMachine(state, fmt.Sprintf("m%d", i), m, strings.Join(subst, ";"))
	}
	if s.server != nil {
		s.addNodes(state)
		s.addReleases(state)
	}
	return state
}

func (s *Scene) addMachine(state EndState, name string, m *machine.Machine, subst string) {
	s.t.Helper()
	for line := range strings.Lines(s.Exec(m, fmt.Sprintf(owned, subst))) {
		key, value, ok := strings.Cut(strings.TrimSpace(line), "|")
		if !ok {
			s.t.Fatalf("reading what gpuctl owns on %s: %q", m.Name, line)
		}
		state[name+" "+key] = value
	}
}

// Node is what tests ask of a Kubernetes node.
type Node struct {
	Metadata struct {
		Name        string
		UID         string
		Labels      map[string]string
		Annotations map[string]string
	}
	Spec struct {
		Taints        []struct{ Key, Value, Effect string }
		Unschedulable bool
	}
	Status struct {
		Allocatable map[string]string
		Conditions  []struct{ Type, Status string }
	}
}

// Tainted says whether the node has the taint of that key.
func (n Node) Tainted(key string) bool {
	for _, t := range n.Spec.Taints {
		if t.Key == key {
			return true
		}
	}
	return false
}

// Ready says whether the node is.
func (n Node) Ready() bool {
	for _, c := range n.Status.Conditions {
		if c.Type == "Ready" {
			return c.Status == "True"
		}
	}
	return false
}

// Nodes asks the API server, on its own machine.
func (s *Scene) Nodes() map[string]Node {
	s.t.Helper()
	var list struct{ Items []Node }
	s.Kubectl(&list, "get nodes -o json")
	nodes := map[string]Node{}
	for _, n := range list.Items {
		nodes[n.Metadata.Name] = n
	}
	return nodes
}

// Server runs a script as root on the server and returns what it printed.
func (s *Scene) Server(script string) string {
	s.t.Helper()
	return s.Exec(s.server, script)
}

// Kubectl runs kubectl on the server and decodes what it prints.
func (s *Scene) Kubectl(into any, args string) {
	s.t.Helper()
	out := s.Exec(s.server, "timeout 30 k3s kubectl "+args)
	if err := json.Unmarshal([]byte(out), into); err != nil {
		s.t.Fatalf("kubectl %s: %v: %s", args, err, end(out, 10))
	}
}

func (s *Scene) addNodes(state EndState) {
	s.t.Helper()
	for name, n := range s.Nodes() {
		for i, m := range s.machines {
			if m.Name == name {
				name = fmt.Sprintf("m%d", i)
			}
		}
		state["node "+name+" uid"] = n.Metadata.UID
		for key, value := range n.Metadata.Labels {
			if strings.HasPrefix(key, "nvidia.com/") || strings.HasPrefix(key, "feature.node.kubernetes.io/") {
				continue // what feature discovery found; it takes its time and says so anew
			}
			state["node "+name+" label "+key] = strings.ReplaceAll(value, n.Metadata.Name, name)
		}
		for _, t := range n.Spec.Taints {
			if strings.HasPrefix(t.Key, "node.kubernetes.io/") {
				continue // the control plane's own, moments behind the node's conditions
			}
			state["node "+name+" taint "+t.Key] = t.Value + ":" + t.Effect
		}
	}
}

func (s *Scene) addReleases(state EndState) {
	s.t.Helper()
	var list struct {
		Items []struct {
			Metadata struct {
				Namespace string
				Labels    map[string]string
			}
		}
	}
	s.Kubectl(&list, "get secrets -A -l owner=helm -o json")
	for _, i := range list.Items {
		l := i.Metadata.Labels
		state[fmt.Sprintf("release %s/%s %s", i.Metadata.Namespace, l["name"], l["version"])] = l["status"]
	}
}

// Comparable leaves out what differs between two clusters of the same making:
// UIDs of nodes, starts of units, tokens.
func (a EndState) Comparable() EndState {
	b := maps.Clone(a)
	maps.DeleteFunc(b, func(key, _ string) bool {
		return strings.HasSuffix(key, " uid") || strings.Contains(key, " start ") || strings.Contains(key, " token ")
	})
	return b
}

// Diff lists the facts that differ, "" for none.
func (a EndState) Diff(b EndState) string {
	var diff strings.Builder
	all := maps.Clone(a)
	maps.Copy(all, b)
	for _, key := range sorted(all) {
		if a[key] != b[key] {
			fmt.Fprintf(&diff, "%s: %q became %q\n", key, a[key], b[key])
		}
	}
	return diff.String()
}
