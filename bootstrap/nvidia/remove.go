package nvidia

import (
	"context"
	_ "embed"
	"fmt"
	"sort"
	"strings"
	"time"

	"github.com/gpuctl/gpuctl/bootstrap/host"
	"github.com/gpuctl/gpuctl/bootstrap/plan"
	"github.com/gpuctl/gpuctl/bootstrap/remote"
)

var (
	//go:embed remove_change.sh
	removeChangeScript string
	//go:embed remove_verify.sh
	removeVerifyScript string
)

// RemoveID is the ID of the action that takes the driver off a machine.
func RemoveID(machine string) string { return machine + "/driver-remove" }

// OwnDriver says whether gpuctl installed the machine's driver: PathNouveau comes
// with it. The probe must have been asked for that file.
func OwnDriver(seen host.Facts) bool {
	_, ours := seen.Files.Value[PathNouveau]
	return ours
}

// RemovePlan takes the driver's packages off a machine again, with gpuctl's
// package source and its holds. There is nothing to do where gpuctl did not
// install it: a driver of the machine's image stays.
func RemovePlan(machine string, seen host.Facts, on remote.Runner, needs ...string) []plan.Action {
	if !OwnDriver(seen) || seen.Packages.Value.Manager != "apt" {
		return nil
	}
	packages := driverPackagesOf(seen)
	changes := []string{"delete " + PathNouveau + ", " + PathDriverSource + ", " + PathDriverKey}
	if len(packages) > 0 {
		changes = append([]string{"purge " + strings.Join(packages, ", ")}, changes...)
	}
	return []plan.Action{{
		ID: RemoveID(machine), Machine: machine, Title: "remove the NVIDIA driver", Needs: needs,
		Reason: fmt.Sprintf("it was asked for, and %d packages that gpuctl installed are there", len(packages)), Changes: changes,
		Consent: plan.ConsentDriver, Timeout: 40 * time.Minute,
		Apply: func(ctx context.Context, say plan.Say) error {
			say("purging %d packages", len(packages))
			err := host.Transaction{
				Name: "remove the NVIDIA driver", Unit: "gpuctl-apt-driver-remove",
				Change: removeChangeScript, Verify: removeVerifyScript,
				Args: append([]string{PathNouveau, PathDriverSource, PathDriverKey}, packages...),
			}.Run(ctx, on, say)
			if err != nil {
				return fmt.Errorf("removing the driver: %w", err)
			}
			return nil
		},
	}}
}

// driverPackagesOf are the installed packages of the driver, in order. The
// Container Toolkit and its library are not among them.
func driverPackagesOf(seen host.Facts) []string {
	var out []string
	for name := range seen.Packages.Value.Installed {
		if strings.Contains(name, "container") {
			continue
		}
		for _, prefix := range []string{"nvidia-", "libnvidia-", "cuda-drivers", "linux-modules-nvidia-"} {
			if strings.HasPrefix(name, prefix) {
				out = append(out, name)
				break
			}
		}
	}
	sort.Strings(out)
	return out
}
