package k3s

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gpuctl/gpuctl/bootstrap/plan"
	"github.com/gpuctl/gpuctl/bootstrap/remote"
	"github.com/gpuctl/gpuctl/bootstrap/spread"
	"github.com/gpuctl/gpuctl/internal/diag"
)

// Access is what applying needs beside the plan. Planning touches none of it.
type Access struct {
	// On runs commands on the machine.
	On remote.Runner
	// Fetch opens a URL on the client, for machines that cannot download themselves; nil means plain HTTP.
	Fetch func(ctx context.Context, url string) (io.ReadCloser, error)
	// Spread brings a file to a path of the machine, from another machine of its network where one has it; nil sends it
	// from here.
	Spread func(ctx context.Context, f spread.File, to spread.Place, say plan.Say) error
	// Bundled is the binary of an offline bundle, where Want.Bundle names one.
	Bundled spread.File
	// Join returns the credentials of the server to join; nil on the first server.
	Join func(ctx context.Context) (Credentials, error)
	// StartLimit bounds the time k3s may take to come up; 0 means 5 minutes.
	StartLimit time.Duration
}

// BinaryID and ActionID are the IDs of a machine's actions.
func BinaryID(machine string) string { return machine + "/k3s-binary" }

// ActionID is the action after which k3s runs as wanted.
func ActionID(machine string) string { return machine + "/k3s" }

// Plan compares wish and facts. It does no I/O. needs are the IDs that k3s
// itself has to wait for (host preparation, the toolkit, the server); the
// download waits for nothing. With a blocking finding there are no actions.
func Plan(w Want, s Seen, a Access, needs ...string) ([]plan.Action, []diag.Finding) {
	findings := Findings(w, s)
	if diag.AnyBlocks(findings) {
		return nil, findings
	}
	var actions []plan.Action
	change := compare(w, s)
	if change.binary != "" {
		actions = append(actions, downloadAction(w, s, a, change.binary))
	}
	if reasons := change.all(); len(reasons) > 0 {
		actions = append(actions, installAction(w, s, a, change, needs))
	}
	return actions, findings
}

// change is what differs on one machine.
type change struct {
	binary string   // why the binary must be fetched
	files  []string // files that differ and why
	unit   []string // what is wrong with the unit
	// restart says that k3s runs and has read what is now out of date; start that it does not run.
	restart, start bool
	registries     string
	// moved says that etcd knows this server by another address than the wanted one.
	moved bool
	// migrates says that the data in sqlite go over to etcd.
	migrates bool
	// first says that k3s has never started here.
	first bool
}

func (c change) all() []string {
	var out []string
	if c.first && c.binary != "" {
		return []string{c.binary} // then everything else is absent too
	}
	if c.binary != "" {
		out = append(out, c.binary)
	}
	return append(append(out, c.files...), c.unit...)
}

func compare(w Want, s Seen) change {
	unit, there := s.Units[w.Unit()]
	running := there && unit.Active == "active"
	c := change{first: !there, start: !running, binary: binaryReason(w, s)}
	c.restart = running && c.binary != ""
	c.moved = moved(w, s)
	if c.migrates = migrates(w, s); c.migrates {
		c.files, c.restart = append(c.files, "the datastore is sqlite, wanted etcd"), running
	}
	for _, f := range Files(w) {
		if why := fileReason(f, s); why != "" {
			c.files = append(c.files, why)
			c.restart = c.restart || (running && f.AtStart)
		}
	}
	if why := tokenReason(w, s); why != "" {
		c.files = append(c.files, why)
		c.restart = c.restart || running
	}
	if text, err := registriesChange(w, s.Registries); err == nil && text != "" && !registriesRight(w, s) {
		c.registries = text
		c.files = append(c.files, RegistriesFile+" lacks wanted mirrors")
		c.restart = c.restart || running
	}
	if running && s.Unregistered != "" {
		c.unit, c.restart = append(c.unit, s.Unregistered), true
	}
	switch {
	case there && unit.Active != "active":
		c.unit = append(c.unit, fmt.Sprintf("%s.service is %s (%s)", w.Unit(), unit.Active, unit.Sub))
	case !there && c.binary == "" && len(c.files) == 0:
		c.unit = append(c.unit, w.Unit()+".service is absent")
	}
	if there && unit.Enabled != "enabled" {
		c.unit = append(c.unit, w.Unit()+".service does not start at boot")
	}
	return c
}

// registriesRight reports whether registries.yaml is known to be as wanted
// without its content: by its hash, or because Observe found nothing to add.
func registriesRight(w Want, s Seen) bool {
	want, _ := w.registries()
	have, there := s.Files[RegistriesFile]
	return there && s.Hash != nil && have.Hash == s.Hash([]byte(want))
}

func binaryReason(w Want, s Seen) string {
	switch {
	case s.Version == "":
		return "k3s is absent"
	case s.Version != w.Version:
		return fmt.Sprintf("k3s is %s, wanted %s", s.Version, w.Version)
	case w.SHA256 != "" && s.SHA256 != "" && !strings.EqualFold(s.SHA256, w.SHA256):
		return "k3s is not the pinned binary: its SHA-256 differs"
	}
	return ""
}

func fileReason(f File, s Seen) string {
	have, there := s.Files[f.Path]
	switch {
	case !there:
		return f.Path + " is absent"
	case s.Hash != nil && have.Hash != s.Hash([]byte(f.Content)):
		return f.Path + " differs"
	case !sameMode(have.Mode, f.Mode):
		return fmt.Sprintf("%s has mode %s, wanted %s", f.Path, have.Mode, f.Mode)
	}
	return ""
}

func tokenReason(w Want, s Seen) string {
	paths := []string{tokenFile(w)}
	if w.Server() {
		paths = append(paths, AgentTokenFile)
	}
	for _, p := range paths {
		have, there := s.Files[p]
		if !there {
			return p + " is absent"
		}
		if !sameMode(have.Mode, "0600") {
			return fmt.Sprintf("%s has mode %s, wanted 0600", p, have.Mode)
		}
	}
	// Only a member's token can be told from the right one, and only where it is known.
	if !w.Server() && w.AgentToken != "" && s.Hash != nil && s.Files[AgentTokenFile].Hash != s.Hash([]byte(w.AgentToken+"\n")) {
		return AgentTokenFile + " is not the server's"
	}
	return ""
}

func sameMode(a, b string) bool { return strings.TrimLeft(a, "0") == strings.TrimLeft(b, "0") }

// Findings says what stands against k3s on this machine.
func Findings(w Want, s Seen) []diag.Finding {
	var out []diag.Finding
	found := func(code diag.Code, format string, args ...any) {
		out = append(out, diag.Found(code, w.Machine, fmt.Sprintf(format, args...)))
	}
	for _, err := range w.Check() {
		f := diag.Found("k3s-config-invalid", w.Machine, err.Error())
		f.Severity = diag.Blocks
		out = append(out, f)
	}
	if s.Unknown != "" {
		f := diag.Found("probe-incomplete", w.Machine, s.Unknown)
		f.Severity = diag.Blocks
		return append(out, f)
	}
	other := "k3s-agent"
	if !w.Server() {
		other = "k3s"
	}
	if s.Foreign(w.ClusterID) {
		found("cluster-other", "%s names another cluster than %s", ClusterFile, w.ClusterID)
	}
	_, ours := s.Files[OwnConfig]
	if _, there := s.Units[other]; there {
		found("k3s-other-role", "%s.service is installed, the machine is to be %s %s", other, article(w), w.Role)
	} else if _, there := s.Units[w.Unit()]; there && !ours {
		found("k3s-foreign", "%s.service is installed without %s", w.Unit(), OwnConfig)
	}
	if s.Version != "" && ours {
		switch d := compareVersions(w.Version, s.Version); {
		case d < 0:
			found("k3s-downgrade", "installed %s, wanted %s", s.Version, w.Version)
		case w.Server() && minorGap(s.Version, w.Version) > 1:
			found("k3s-skips-minor", "installed %s, wanted %s", s.Version, w.Version)
		}
	}
	if w.First() && w.Datastore == SQLite && s.datastore(w) == Etcd {
		found("datastore-one-way", "the data are in etcd, wanted sqlite")
	}
	if moved(w, s) && !w.OnlyServer {
		found("etcd-not-member", "etcd knows it as %s, and its address is %s now", s.NodeIP, w.NodeIP)
	}
	if _, err := registriesChange(w, s.Registries); err != nil {
		found("registries-invalid", "%v", err)
	}
	return append(out, userConfigFindings(w, s)...)
}

func article(w Want) string {
	if w.Server() {
		return "a"
	}
	return "an"
}

func minorGap(have, want string) int {
	a, okA := minor(have)
	b, okB := minor(want)
	if !okA || !okB {
		return 0
	}
	return b - a
}

// compareVersions orders release tags: v1.36.3+k3s1.
func compareVersions(a, b string) int {
	return slices.Compare(numbers(a), numbers(b))
}

func numbers(version string) []int {
	var out []int
	for _, part := range strings.FieldsFunc(strings.ReplaceAll(version, "+k3s", "."), func(r rune) bool { return r < '0' || r > '9' }) {
		n, err := strconv.Atoi(part)
		if err != nil {
			return out
		}
		out = append(out, n)
	}
	return out
}
