package nvidia

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gpuctl/gpuctl/bootstrap/host"
	"github.com/gpuctl/gpuctl/bootstrap/plan"
	"github.com/gpuctl/gpuctl/bootstrap/remote"
	"github.com/gpuctl/gpuctl/internal/source"
)

// Files that gpuctl owns for the toolkit's repository.
const (
	PathKey    = "/usr/share/keyrings/gpuctl-nvidia.asc"
	PathSource = "/etc/apt/sources.list.d/gpuctl-nvidia.list"
)

var (
	//go:embed toolkit_prepare.sh
	prepareScript string
	//go:embed toolkit_change.sh
	changeScript string
	//go:embed toolkit_verify.sh
	verifyScript string
	//go:embed fetch.sh
	fetchScript string
)

// Packages are the toolkit's, all of one version.
func Packages() []string {
	return []string{"nvidia-container-toolkit", "nvidia-container-toolkit-base", "libnvidia-container-tools", "libnvidia-container1"}
}

// Plan says what is pending for the GPUs of a machine: the driver, as
// "<machine>/driver", "<machine>/reboot" and "<machine>/fabric-manager", then the
// Container Toolkit, as "<machine>/toolkit". That must be there before k3s
// starts, which then finds the runtime by itself; a k3s that already runs is
// restarted by "<machine>/runtime". It is pure; on is only used by Apply. A
// machine without GPUs, or whose toolkit the GPU Operator brings, needs nothing.
func Plan(want Want, seen host.Facts, on remote.Runner) []plan.Action {
	if len(GPUs(seen)) == 0 || want.Mode == ModeNone || want.Mode == ModeOperator {
		return nil
	}
	actions := planDriver(want, seen, on)
	var after []string
	for _, a := range actions {
		after = append(after, a.ID)
	}
	reason := pending(want, seen)
	if reason != "" {
		a := toolkitAction(want, reason, on)
		a.Needs = append(a.Needs, after...)
		actions = append(actions, a)
	}
	if access := planAccess(want, seen, on); len(access) > 0 {
		for i := range actions {
			actions[i].Needs = append(actions[i].Needs, AccessID(want.Machine))
		}
		actions = append(access, actions...)
	}
	if a, ok := runtimeAction(want, seen, reason != "", on); ok {
		actions = append(actions, a)
	}
	return actions
}

// planDriver plans the way to a good driver: packages, the reboot that may follow, the fabric manager.
func planDriver(want Want, seen host.Facts, on remote.Runner) []plan.Action {
	c := courseOf(want, seen)
	if c.obstacle != nil {
		return nil
	}
	var actions []plan.Action
	if c.install != "" {
		actions = append(actions, driverAction(want, seen, c, on))
	}
	if c.boot != "" {
		actions = append(actions, rebootAction(want, c, on))
	}
	if a, ok := fabricAction(want, seen, c, on); ok {
		actions = append(actions, a)
	}
	return actions
}

func toolkitAction(want Want, reason string, on remote.Runner) plan.Action {
	t := want.Toolkit
	version := upstream(t.Version)
	return plan.Action{
		ID:      ToolkitID(want.Machine),
		Machine: want.Machine,
		Title:   "install NVIDIA Container Toolkit " + t.Version,
		Reason:  reason,
		Changes: []string{
			PathSource + ": " + t.Repository,
			PathKey + ": key " + t.KeyFingerprint,
			"packages, held: " + strings.Join(pinned(t.Version), " "),
		},
		// Two changes of packages at once would only meet each other's lock.
		Needs:   []string{want.Machine + "/host-holds"},
		Timeout: 30 * time.Minute,
		Apply: func(ctx context.Context, say plan.Say) error {
			say("fetching the key of %s", t.Repository)
			key, err := fetchKey(ctx, on, want.Packages, t)
			if err != nil {
				return fmt.Errorf("installing NVIDIA Container Toolkit %s: %w", version, err)
			}
			say("installing %s", strings.Join(pinned(t.Version), " "))
			return candidates(CodeToolkitPackage, want.Machine, install(t, key).Run(ctx, on, say))
		},
	}
}

// pending says why the toolkit is to be installed, "" where it is not.
func pending(want Want, seen host.Facts) string {
	version := upstream(want.Toolkit.Version)
	t := seen.Toolkit
	switch {
	case t.Unsure():
		return "the toolkit could not be seen: " + t.Reason()
	case t.Missing() || t.Value.Version == "" || t.Value.Binaries["nvidia-container-runtime"] == "":
		return "NVIDIA Container Toolkit is absent"
	case compare(t.Value.Version, version) < 0:
		return "version is " + t.Value.Version
	case compare(t.Value.Version, version) > 0 && ours(seen):
		return "version is " + t.Value.Version + ", newer than wanted"
	case compare(t.Value.Version, version) > 0:
		return "" // a newer one of somebody else's stays, see CodeToolkitNewer
	}
	held := map[string]bool{}
	for _, h := range seen.Packages.Value.Held {
		held[h] = true
	}
	for _, p := range Packages() {
		if _, installed := seen.Packages.Value.Installed[p]; installed && !held[p] {
			return p + " is not held"
		}
	}
	return ""
}

// ToolkitID is the action that installs the Container Toolkit on a machine.
func ToolkitID(machine string) string { return machine + "/toolkit" }

// ToolkitMoves says from which version to which a toolkit that serves already is
// to change; both are "" where it stays, and where none is there.
func ToolkitMoves(want Want, seen host.Facts) (from, to string) {
	to = upstream(want.Toolkit.Version)
	if from = seen.Toolkit.Value.Version; from == "" || compare(from, to) == 0 || pending(want, seen) == "" {
		return "", ""
	}
	return from, to
}

// ours says whether the toolkit's packages came by gpuctl: from its repository, and held.
// Such a toolkit goes back to an older version too, when the set does.
func ours(seen host.Facts) bool {
	_, from := seen.Files.Value[PathSource]
	return from && slices.Contains(seen.Packages.Value.Held, Packages()[0])
}

func pinned(version string) []string {
	var out []string
	for _, p := range Packages() {
		out = append(out, p+"="+version)
	}
	return out
}

// fetchKey lets the machine fetch the key, as it must reach the repository
// anyway, and checks it here: no gpg is needed on the machine.
func fetchKey(ctx context.Context, on remote.Runner, mirror source.Source, t Toolkit) ([]byte, error) {
	res, err := on.Run(ctx, remote.Cmd{
		Name: "fetch package key", Script: fetchScript, Args: []string{t.KeyURL}, Timeout: 2 * time.Minute, MaxOutput: 64 << 10,
		Env: mirror.Env(), Secrets: mirror.Secrets(),
	})
	text := res.Stdout
	if remote.ExitCode(err) == 41 { // no program there that can log in
		text, err = mirror.Get(ctx, t.KeyURL, 64<<10)
	}
	if err != nil {
		return nil, fmt.Errorf("fetching %s on the machine: %w", t.KeyURL, err)
	}
	key, err := PinnedKey(text, t.KeyFingerprint)
	if err != nil {
		return nil, fmt.Errorf("checking %s: %w", t.KeyURL, err)
	}
	return key, nil
}

// install is the change of packages, with the checked key on standard input.
func install(t Toolkit, key []byte) host.Transaction {
	return host.Transaction{
		Name:    "install NVIDIA Container Toolkit " + upstream(t.Version),
		Unit:    "gpuctl-apt-toolkit",
		Prepare: prepareScript,
		Change:  changeScript,
		Verify:  verifyScript,
		Args:    append([]string{PathKey, PathSource, strings.TrimSuffix(t.Repository, "/"), upstream(t.Version), t.Version}, Packages()...),
		Stdin:   bytes.NewReader(key),
	}
}
