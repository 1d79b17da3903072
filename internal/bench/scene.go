//go:build unix

package bench

import (
	_ "embed"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gpuctl/gpuctl/bootstrap/host"
	"github.com/gpuctl/gpuctl/bootstrap/k3s"
	"github.com/gpuctl/gpuctl/charts"
	"github.com/gpuctl/gpuctl/internal/inventory"
)

// machineText is the probe's answer of a synthetic machine with two H100 that
// is a proven node already, with words in capitals for what differs.
//
//go:embed machine.txt
var machineText string

const (
	agentToken = "K10" + caHash + "::node:0123456789abcdef0123456789abcdef"
	serverText = "K10" + caHash + "::server:fedcba9876543210fedcba9876543210"
	caHash     = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
)

// scene is a cluster on which gpuctl finds nothing to do.
type scene struct {
	set      charts.Set
	machines []synthetic
}

// synthetic is one machine of a scene: its files by path and the fixed part of its answer.
type synthetic struct {
	name, ip string
	uuids    []string
	files    map[string]file
	answer   string
}

type file struct{ mode, content string }

// name is the name of a machine, counted from 0; machine 0 is the server.
func machineName(i int) string { return fmt.Sprintf("gpu-%04d", i) }

func newScene(n int) (scene, error) {
	set, err := charts.Load("")
	if err != nil {
		return scene{}, err
	}
	s := scene{set: set}
	for i := range n {
		s.machines = append(s.machines, s.machine(i))
	}
	return s, nil
}

func (s scene) machine(i int) synthetic {
	number := fmt.Sprintf("%012d", i)
	m := synthetic{
		name: machineName(i), ip: address(i), files: s.files(i),
		uuids: []string{"GPU-92fb3a39-542c-93cc-ef77-" + number, "GPU-8aa81606-5cda-7952-da12-" + number},
	}
	unit := "k3s-agent"
	if i == 0 {
		unit = "k3s"
	}
	sum, _ := s.set.Checksum("amd64")
	upstream, _, _ := strings.Cut(s.set.Toolkit.Version, "-")
	m.answer = strings.NewReplacer(
		"MACX", fmt.Sprintf("%02x:%02x", i/256, i%256), "NODEIP", m.ip, "NAME\n", m.name+"\n", "NUMBER", number,
		"MACHINEID", "0123456789abcdef0123"+number, "UPSTREAM", upstream, "TOOLKIT", s.set.Toolkit.Version,
		"K3SSUM", sum, "K3SVERSION", s.set.K3s.Version, "UNIT\n", unit+"\n",
	).Replace(machineText)
	return m
}

func address(i int) string { return fmt.Sprintf("10.20.%d.%d", 1+i/200, 1+i%200) }

// files are what gpuctl wants to find, rendered by the product itself.
func (s scene) files(i int) map[string]file {
	role, name := inventory.Agent, machineName(i)
	if i == 0 {
		role = inventory.Server
	}
	want := k3s.Want{
		Machine: name, Role: role, Version: s.set.K3s.Version, NodeIP: address(i), Interface: "eth0",
		Unproven: role == inventory.Agent,
	}
	if role == inventory.Server {
		want.Datastore, want.Backend, want.TLSSANs = k3s.Etcd, "vxlan", []string{"127.0.0.1"}
		want.Disable = []string{"traefik", "servicelb"}
	} else {
		want.ServerURL = "https://" + address(0) + ":6443"
	}
	files := map[string]file{
		host.PathModules:   {"644", string(host.ModulesFile(host.Want{Modules: []string{"vxlan"}}))},
		k3s.AgentTokenFile: {"600", agentToken + "\n"},
	}
	sysctl, _ := host.SysctlFile(host.Facts{})
	files[host.PathSysctl] = file{"644", string(sysctl)}
	files[host.PathUnattended] = file{"644", string(host.UnattendedFile())}
	if role == inventory.Server {
		files[k3s.ServerTokenFile] = file{"600", "fedcba9876543210fedcba9876543210"}
	}
	for _, f := range k3s.Files(want) {
		files[f.Path] = file{strings.TrimLeft(f.Mode, "0"), f.Content}
	}
	return files
}

// probe is the answer to a probe: the fixed part, the client's mark, the time
// and the keyed hashes of the files it asked for.
func (s scene) probe(machine int, c command) string {
	m := s.machines[machine]
	if len(c.args) == 0 {
		return ""
	}
	key := ""
	if found := keyPattern.FindStringSubmatch(c.setup); found != nil {
		key = found[1]
	}
	var states strings.Builder
	for _, path := range c.args[1:] {
		if f, ok := m.files[path]; ok {
			fmt.Fprintf(&states, "file\t%s 0 0 %d\t%s\t%s\t-\n", f.mode, len(f.content), host.KeyedHash(key, []byte(f.content)), path)
		}
	}
	now := strconv.FormatInt(time.Now().UnixNano(), 10)
	return strings.NewReplacer("\nM ", "\n"+c.args[0]+" ", "NOW", now, "FILES", states.String()).Replace(m.answer)
}

// credentials is the server's answer to the script that reads them. known are the
// host keys of all machines, as an earlier run has left them.
func (s scene) credentials(c command, kubeconfig, known string) string {
	if len(c.args) < 2 {
		return ""
	}
	mark := c.args[1] + " "
	return strings.Join([]string{
		mark + "kubeconfig", kubeconfig, mark + "agent-token", agentToken, mark + "server-token", serverText, mark + "known-hosts", known, mark + "end", "",
	}, "\n")
}

// Configuration is the gpuctl.yaml of a farm.
func Configuration(ports []int, identity string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "apiVersion: gpuctl.dev/v1alpha1\nkind: Cluster\nmetadata:\n  name: bench\nspec:\n  ssh:\n    user: root\n    identityFile: %s\n  machines:\n", identity)
	for i, port := range slices.Clone(ports) {
		role := "agent"
		if i == 0 {
			role = "server"
		}
		fmt.Fprintf(&b, "  - name: %s\n    role: %s\n    host: 127.0.0.1\n    port: %d\n", machineName(i), role, port)
	}
	return b.String()
}
