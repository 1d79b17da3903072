package host

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"slices"
	"time"

	"github.com/gpuctl/gpuctl/bootstrap/host/probe"
	"github.com/gpuctl/gpuctl/bootstrap/remote"
)

//go:embed probe/sections/*.sh
var bodies embed.FS

// DefaultDataDir is where k3s keeps its data unless told otherwise.
const DefaultDataDir = "/var/lib/rancher/k3s"

// DefaultFiles are paths whose state is always asked for, beside those of the request.
func DefaultFiles() []string {
	return []string{
		"/etc/rancher/k3s/config.yaml",
		"/etc/rancher/k3s/registries.yaml",
		"/etc/rancher/node/password",
		"/usr/local/bin/k3s-uninstall.sh",
		"/usr/local/bin/k3s-agent-uninstall.sh",
		PathModules,
		PathSysctl,
		PathUnattended,
		PathZoneNodes,
		PathZonePods,
		PathSpotScript,
		PathSpotUnit,
	}
}

// Request says what a probe shall look at beside the facts of every machine.
type Request struct {
	// DataDir of k3s; empty means DefaultDataDir.
	DataDir string
	// Device is a disk to look at closely; empty means none.
	Device string
	// Files are paths whose existence, mode and keyed hash are wanted.
	Files []string
	// Key makes the hashes of files; a random one is drawn where it is empty,
	// and then no hash can be compared. It never reaches an argument list.
	Key string
}

// sections is the registry of the probe: a fact is added by a body in
// probe/sections and a line here.
func sections() []probe.Section {
	limits := []struct {
		name    string
		seconds int
	}{
		// The slow ones first: they run at the same time.
		{"smi", 45}, {"busy", 45}, {"candidates", 15}, {"packages", 15}, {"k3s", 25}, {"toolkit", 10},
		{"driver", 10}, {"kernellog", 8}, {"ntp", 5}, {"fabric", 8}, {"abilities", 8}, {"disks", 8},
		{"firewall", 8}, {"ports", 8}, {"files", 10}, {"others", 8}, {"os", 3}, {"system", 5}, {"memory", 3},
		{"modules", 5}, {"sysctls", 3}, {"network", 5}, {"cloudinit", 3}, {"secureboot", 3}, {"pci", 8}, {"datadisk", 8},
	}
	all := make([]probe.Section, 0, len(limits))
	for _, l := range limits {
		body, err := bodies.ReadFile("probe/sections/" + l.name + ".sh")
		if err != nil {
			panic("host: no body for section " + l.name) // embedded at build time; a test reads each
		}
		all = append(all, probe.Section{Name: l.name, Limit: time.Duration(l.seconds) * time.Second, Body: string(body)})
	}
	return all
}

// Command is the one command of a probe; its output is for Parse with the same mark.
func Command(mark string, r Request) remote.Cmd { return command(mark, r, sections()) }

func command(mark string, r Request, all []probe.Section) remote.Cmd {
	if r.Device == "" {
		all = slices.DeleteFunc(all, func(s probe.Section) bool { return s.Name == "datadisk" })
	}
	dataDir := r.DataDir
	if dataDir == "" {
		dataDir = DefaultDataDir
	}
	key := r.Key
	if key == "" {
		key = rand.Text()
	}
	return remote.Cmd{
		Name:    "probe",
		Script:  probe.Assemble(all),
		Args:    append([]string{mark, dataDir}, unique(DefaultFiles(), r.Files)...),
		Env:     map[string]string{"GPUCTL_PROBE_KEY": key, "GPUCTL_PROBE_DEVICE": r.Device},
		Secrets: []string{key},
		Sudo:    true,
		Timeout: probe.Longest(all) + 30*time.Second,
	}
}

// Probe looks at a machine by one command, and by a second one where sections
// timed out that do not hang by themselves. It changes nothing on the machine
// but for moments: a directory in /tmp, a mount and a cgroup are tried and
// removed. Errors are those of remote.Runner, and probe.ErrCut for output that is not whole.
func Probe(ctx context.Context, on remote.Runner, r Request) (Facts, error) {
	sent := time.Now()
	out, err := ask(ctx, on, r, sections())
	if err != nil {
		return factsOf(out), fmt.Errorf("looking at the machine: %w", err)
	}
	received := time.Now()
	if late := timedOut(out, sections()); len(late) > 0 {
		// What fails the second time leaves the first answer: some sections were late.
		again, err := ask(ctx, on, r, late)
		if ctx.Err() != nil {
			return factsOf(out), fmt.Errorf("looking at the machine: %w", err)
		}
		for _, s := range late {
			if a, ok := again.Answers[s.Name]; ok && a.Status != probe.Timeout {
				out.Answers[s.Name] = a
			}
		}
	}
	facts := factsOf(out)
	facts.Clock = compareClocks(facts.Clock, sent, received)
	return facts, nil
}

func ask(ctx context.Context, on remote.Runner, r Request, all []probe.Section) (probe.Output, error) {
	mark := "gpuctl-" + rand.Text()
	res, err := on.Run(ctx, command(mark, r, all))
	if err != nil {
		return probe.Output{}, err
	}
	return probe.Split(res.Stdout, mark)
}

// hangs is the limit from which a section is one that waits for a driver: it
// would hang again, where others are late because the machine is busy.
const hangs = 30 * time.Second

// timedOut are the sections to ask again, with twice the time.
func timedOut(out probe.Output, all []probe.Section) []probe.Section {
	var late []probe.Section
	for _, s := range all {
		if a, ok := out.Answers[s.Name]; ok && a.Status == probe.Timeout && s.Limit < hangs {
			s.Limit *= 2
			late = append(late, s)
		}
	}
	return late
}

// compareClocks bounds the machine's offset: its first stamp was made after the
// command was sent, its last one before the answer was here.
func compareClocks(f Fact[Clock], sent, received time.Time) Fact[Clock] {
	if !f.Has() {
		return f
	}
	f.Value.OffsetMax = f.Value.First.Sub(sent)
	f.Value.OffsetMin = f.Value.Last.Sub(received)
	return f
}

// KeyedHash is what the probe returns for a file with this content when the
// request carried this key: it shows drift and gives nothing away.
func KeyedHash(key string, content []byte) string {
	h := sha256.New()
	h.Write([]byte(key + "\n"))
	h.Write(content)
	return hex.EncodeToString(h.Sum(nil))
}

func unique(lists ...[]string) []string {
	seen := map[string]bool{}
	var out []string
	for _, list := range lists {
		for _, s := range list {
			if !seen[s] {
				seen[s] = true
				out = append(out, s)
			}
		}
	}
	return out
}
