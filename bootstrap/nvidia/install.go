package nvidia

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/gpuctl/gpuctl/bootstrap/host"
	"github.com/gpuctl/gpuctl/bootstrap/plan"
	"github.com/gpuctl/gpuctl/bootstrap/remote"
	"github.com/gpuctl/gpuctl/internal/source"
)

// Files that gpuctl owns for the driver.
const (
	PathDriverKey    = "/usr/share/keyrings/gpuctl-nvidia-driver.asc"
	PathDriverSource = "/etc/apt/sources.list.d/gpuctl-nvidia-driver.list"
	PathNouveau      = "/etc/modprobe.d/gpuctl-nouveau.conf"
)

var (
	//go:embed driver_prepare.sh
	driverPrepareScript string
	//go:embed driver_change.sh
	driverChangeScript string
	//go:embed driver_verify.sh
	driverVerifyScript string
)

// DriverID is the action that installs the packages of the driver.
func DriverID(machine string) string { return machine + "/driver" }

// RebootID is the action after which the driver that is installed is the one that runs.
func RebootID(machine string) string { return machine + "/reboot" }

// FabricID is the action after which the fabric manager runs.
func FabricID(machine string) string { return machine + "/fabric-manager" }

// driverAction installs the driver's packages. That they are loaded is for
// rebootAction: the machine is looked at between.
func driverAction(want Want, seen host.Facts, c course, on remote.Runner) plan.Action {
	p := c.packages
	names := p.names(seen.System.Value.Kernel)
	var changes []string
	if p.Source.Repository != "" {
		changes = append(changes, PathDriverSource+": "+p.Source.Repository, PathDriverKey+": key "+p.Source.KeyFingerprint)
	}
	changes = append(changes, "packages, held: "+strings.Join(names, " "), PathNouveau+": nouveau stays away")
	title := fmt.Sprintf("install NVIDIA driver %d (%s kernel modules)", c.choice.Branch, c.choice.Flavour)
	return plan.Action{
		ID: DriverID(want.Machine), Machine: want.Machine, Title: title,
		Reason: fmt.Sprintf("%s; %s modules: %s", c.install, c.choice.Flavour, c.choice.Reason), Changes: changes,
		Needs:   []string{want.Machine + "/host-kernel", want.Machine + "/host-holds"},
		Barrier: true, Consent: plan.ConsentDriver, Timeout: 55 * time.Minute,
		Apply: func(ctx context.Context, say plan.Say) error {
			stdin, err := sourceKey(ctx, on, want.Packages, p.Source, say)
			if err != nil {
				return fmt.Errorf("installing driver %d: %w", c.choice.Branch, err)
			}
			say("installing %s", strings.Join(names, " "))
			if err := candidates(CodeNoPackage, want.Machine, driverTransaction(c, stdin).Run(ctx, on, say)); err != nil {
				return fmt.Errorf("installing driver %d: %w", c.choice.Branch, err)
			}
			return nil
		},
	}
}

func driverTransaction(c course, key io.Reader) host.Transaction {
	p := c.packages
	return host.Transaction{
		Name: "install NVIDIA driver", Unit: "gpuctl-apt-driver",
		Prepare: driverPrepareScript, Change: driverChangeScript, Verify: driverVerifyScript,
		Args: append([]string{
			PathDriverKey, PathDriverSource, p.Source.Repository, p.Pin, p.Kernel, strconv.Itoa(c.choice.Branch),
		}, p.Packages...),
		Stdin: key, Limit: 50 * time.Minute,
	}
}

// sourceKey is the checked key of a repository, nothing where the machine has
// the repository already.
func sourceKey(ctx context.Context, on remote.Runner, mirror source.Source, s Source, say plan.Say) (io.Reader, error) {
	if s.Repository == "" {
		return nil, nil
	}
	say("fetching the key of %s", s.Repository)
	key, err := fetchKey(ctx, on, mirror, Toolkit{KeyURL: s.KeyURL, KeyFingerprint: s.KeyFingerprint})
	if err != nil {
		return nil, err
	}
	return bytes.NewReader(key), nil
}
