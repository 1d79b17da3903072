package host

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/gpuctl/gpuctl/bootstrap/plan"
	"github.com/gpuctl/gpuctl/bootstrap/remote"
)

// The watcher of spot notices on a machine.
const (
	PathSpotScript = "/usr/local/lib/gpuctl/spot-watch"
	PathSpotUnit   = "/etc/systemd/system/gpuctl-spot.service"
	// SpotUnit is its systemd unit, without ".service".
	SpotUnit = "gpuctl-spot"
)

//go:embed spot-watch.sh
var spotWatchScript []byte

//go:embed spot.sh
var spotScript string

// Spot is a machine that its provider may take away at short notice.
type Spot struct {
	// Provider is whose metadata service is asked: aws, gcp or azure. With any other
	// only a file or a signal on the machine gives notice.
	Provider string
	// Seconds is how long before the end the notice comes; 0 where nothing is known.
	Seconds int
	// After is the action after which the machine is a node.
	After string
}

// SpotID is the action after which a machine watches for its notice.
func SpotID(machine string) string { return machine + "/host-spot" }

// grace is how long a pod gets to end: half of the notice, so that what follows
// the eviction (volumes, end points) fits too; never more than 30 s.
func (s Spot) grace() int {
	if s.Seconds <= 0 {
		return 15
	}
	return min(30, max(1, s.Seconds/2))
}

// every is the time between two looks, in seconds: AWS asks for 5
// (https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/spot-instance-termination-notices.html),
// a notice of 30 s leaves no time for that.
func (s Spot) every() int {
	if s.Provider == "aws" {
		return 5
	}
	return 2
}

// SpotUnitFile is the content of PathSpotUnit.
func SpotUnitFile(want Want) []byte {
	s := want.Spot
	return fmt.Appendf(nil, `# Written by gpuctl.
[Unit]
Description=gpuctl: empty this machine when its provider takes it away
Wants=network-online.target
After=network-online.target k3s.service k3s-agent.service

[Service]
ExecStart=%s %s %s %s %d %d
RuntimeDirectory=gpuctl-spot
RuntimeDirectoryPreserve=yes
Restart=always
RestartSec=5

[Install]
WantedBy=multi-user.target
`, PathSpotScript, dashed(s.Provider), want.Machine, want.dataDir(), s.grace(), s.every())
}

// dashed keeps an empty argument one.
func dashed(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// spotAction installs the watcher, starts it again where it does not run, or
// takes it off a machine that is not to have it any more.
func spotAction(want Want, seen Facts, on remote.Runner) (plan.Action, bool) {
	a := plan.Action{ID: SpotID(want.Machine), Machine: want.Machine, Timeout: 2 * time.Minute}
	if want.Spot == nil {
		_, script := seen.Files.Value[PathSpotScript]
		_, unit := seen.Files.Value[PathSpotUnit]
		if !script && !unit {
			return plan.Action{}, false
		}
		a.Title, a.Reason, a.Changes = "stop watching for the provider's notice", "its group is not spot any more", []string{"remove " + PathSpotUnit + " and " + PathSpotScript}
		a.Apply = func(ctx context.Context, _ plan.Say) error { return setSpot(ctx, on, nil, nil) }
		return a, true
	}
	unit := SpotUnitFile(want)
	reasons := append(fileReason(want.Key, seen, PathSpotScript, spotWatchScript), fileReason(want.Key, seen, PathSpotUnit, unit)...)
	if state := seen.K3s.Value.Units[SpotUnit]; len(reasons) == 0 && !seen.K3s.Unsure() && state.Active != "active" {
		reasons = append(reasons, SpotUnit+".service is "+dashed(state.Active))
	}
	if len(reasons) == 0 {
		return plan.Action{}, false
	}
	a.Title, a.Reason, a.Needs = "watch for the provider's notice", strings.Join(reasons, "; "), []string{want.Spot.After}
	a.Changes = []string{"write " + PathSpotScript, "write " + PathSpotUnit, "on notice: cordon the node and evict its pods, as the kubelet"}
	a.Apply = func(ctx context.Context, _ plan.Say) error { return setSpot(ctx, on, spotWatchScript, unit) }
	return a, true
}

func setSpot(ctx context.Context, on remote.Runner, script, unit []byte) error {
	_, err := on.Run(ctx, remote.Cmd{
		Name: "set the watcher of spot notices", Script: spotScript, Sudo: true, Timeout: 90 * time.Second,
		Args: []string{strconv.Itoa(len(script))}, Stdin: bytes.NewReader(append(bytes.Clone(script), unit...)),
	})
	if err != nil {
		return fmt.Errorf("setting the watcher of spot notices: %w", err)
	}
	return nil
}
