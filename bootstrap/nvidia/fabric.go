package nvidia

import (
	"context"
	_ "embed"
	"fmt"
	"time"

	"github.com/gpuctl/gpuctl/bootstrap/host"
	"github.com/gpuctl/gpuctl/bootstrap/plan"
	"github.com/gpuctl/gpuctl/bootstrap/remote"
)

var (
	//go:embed fabric_change.sh
	fabricChangeScript string
	//go:embed fabric_verify.sh
	fabricVerifyScript string
)

const vendorMellanox = "15b3"

// nvlink5 says whether the machine manages an NVLink 5 board (HGX B200, B300).
// Those have no NVSwitch on the bus but management functions among the
// InfiniBand devices. NVIDIA's driver container reads SW_MNG in their VPD; here
// such a card beside any InfiniBand function of Mellanox's counts.
func nvlink5(seen host.Facts) bool {
	board, infiniband := false, false
	for _, d := range seen.PCI.Value {
		board = board || (d.Vendor == vendorNVIDIA && (d.Device == "2901" || d.Device == "3182"))
		infiniband = infiniband || (d.Vendor == vendorMellanox && d.Class == "0207")
	}
	return board && infiniband
}

// fabricReason says why a fabric manager is to be installed, "" where it is not:
// where nothing is to be managed, or somebody manages it.
func fabricReason(seen host.Facts, c course) string {
	f, switches := seen.Fabric.Value, max(seen.Fabric.Value.Switches, len(Switches(seen)))
	five := nvlink5(seen)
	what := fmt.Sprintf("%d NVSwitches", switches)
	if five {
		what = "an NVLink 5 board"
	}
	switch {
	case switches == 0 && !five, seen.Fabric.Unsure():
		return ""
	case c.install != "":
		return what + ", and the driver changes"
	case c.boot != "" && f.Manager == "":
		return what + ", and no fabric manager"
	case c.boot != "" || seen.Driver.Value.LoadedVersion == "":
		return ""
	}
	probe := check{seen: seen, gpus: GPUs(seen)}
	probe.fabric()
	if len(probe.found) == 0 || (five && f.Manager == "active" && !probe.raised(CodeFabricVersion)) {
		return ""
	}
	return what + ": " + probe.found[0].Evidence
}

// fabricAction installs the fabric manager in exactly the driver's version and
// starts it; on NVLink 5 boards the subnet manager too.
func fabricAction(want Want, seen host.Facts, c course, on remote.Runner) (plan.Action, bool) {
	reason := fabricReason(seen, c)
	if reason == "" || !want.provides() {
		return plan.Action{}, false
	}
	p, ok := fabricPackages(want, seen, c)
	if !ok {
		return plan.Action{}, false
	}
	version, more := seen.Driver.Value.LoadedVersion, []string(nil)
	if c.pending() {
		version = "" // what the driver's action brings
	}
	if nvlink5(seen) {
		more = []string{"nvlsm", "libnvsdm="}
	}
	change := p.FabricManager + " in the driver's version"
	if version != "" {
		change = p.FabricManager + " " + version
	}
	if more != nil {
		change += ", nvlsm, libnvsdm; kernel modules mlx5_core, ib_umad"
	}
	return plan.Action{
		ID: FabricID(want.Machine), Machine: want.Machine, Title: "install and start the fabric manager", Reason: reason,
		Changes: []string{change},
		Needs:   []string{DriverID(want.Machine), RebootID(want.Machine)}, Timeout: 40 * time.Minute,
		Apply: func(ctx context.Context, say plan.Say) error {
			key, err := sourceKey(ctx, on, want.Packages, p.Source, say)
			if err == nil {
				say("installing %s", p.FabricManager)
				err = candidates(CodeNoPackage, want.Machine, host.Transaction{
					Name: "install fabric manager", Unit: "gpuctl-apt-fabric",
					Prepare: driverPrepareScript, Change: fabricChangeScript, Verify: fabricVerifyScript, Stdin: key,
					Args: append([]string{PathDriverKey, PathDriverSource, p.Source.Repository, p.FabricManager, version}, more...),
				}.Run(ctx, on, say))
			}
			if err != nil {
				return fmt.Errorf("installing the fabric manager: %w", err)
			}
			return nil
		},
	}, true
}

// fabricPackages are those of the driver that is there or comes; false where
// it came from somewhere that gpuctl does not know.
func fabricPackages(want Want, seen host.Facts, c course) (DriverPackages, bool) {
	if c.install != "" {
		return c.packages, c.obstacle == nil
	}
	from, version := origin(seen), seen.Driver.Value.FileVersion
	if from == "" || version == "" {
		return DriverPackages{}, false
	}
	p, no := PackagesFor(want, seen, Choice{Flavour: FlavourOpen, Branch: branch(version)})
	return p, no == nil && p.Origin == from
}
