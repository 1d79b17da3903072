package nvidia

import (
	"fmt"
	"strings"

	"github.com/gpuctl/gpuctl/bootstrap/host"
	"github.com/gpuctl/gpuctl/internal/diag"
)

// health looks at single GPUs.
func (c *check) health() {
	var reset, pending []string
	for _, g := range c.seen.SMI.Value.GPUs {
		if g.Trouble != "" {
			reset = append(reset, fmt.Sprintf("GPU %d at %s: %s", g.Index, g.PCI, g.Trouble))
		}
		if g.MIG != "" && g.MIGPending != "" && g.MIG != g.MIGPending {
			pending = append(pending, fmt.Sprintf("GPU %d: %s, pending %s", g.Index, g.MIG, g.MIGPending))
		}
	}
	if len(reset) > 0 {
		c.raise(CodeNeedsReset, "%s", strings.Join(reset, "; "))
	}
	if len(pending) > 0 {
		c.raise(CodeMIGPending, "%s", strings.Join(pending, "; "))
	}
	c.xids()
	c.condition()
	// Where k3s runs, programs on GPUs are pods.
	if n := len(c.seen.SMI.Value.Busy); n > 0 && !k3sRuns(c.seen) {
		c.raise(CodeBusy, "%d GPUs run programs", n)
	}
}

func k3sRuns(seen host.Facts) bool {
	for _, u := range seen.K3s.Value.Units {
		if u.Active == "active" {
			return true
		}
	}
	return false
}

// fabric demands a fabric manager only where NVSwitch is; its version must be
// the driver's in every component.
func (c *check) fabric() {
	driver := c.seen.Driver.Value.LoadedVersion
	if driver == "" || !c.seen.Fabric.Has() {
		return
	}
	f := c.seen.Fabric.Value
	switches := max(f.Switches, len(Switches(c.seen)))
	if switches > 0 {
		c.manager(f, switches, driver)
	}
	waiting := 0
	for _, g := range c.seen.SMI.Value.GPUs {
		if strings.EqualFold(g.Fabric, "In Progress") {
			waiting++
		}
	}
	if waiting > 0 {
		c.raise(CodeFabricNotReady, "fabric state of %d of %d GPUs is In Progress, %d NVSwitches visible", waiting, len(c.seen.SMI.Value.GPUs), switches)
	}
}

func (c *check) manager(f host.Fabric, switches int, driver string) {
	for name, version := range c.seen.Packages.Value.Installed {
		if strings.HasPrefix(name, "nvidia-fabricmanager") && !strings.HasPrefix(name, "nvidia-fabricmanager-dev") && upstream(version) != driver {
			c.raise(CodeFabricVersion, "%s %s, driver %s", name, version, driver)
			return
		}
	}
	if strings.Contains(f.ManagerMessage, "match with driver version") {
		c.raise(CodeFabricVersion, "%s", f.ManagerMessage)
		return
	}
	// Where every GPU says so itself the fabric is up, whoever manages it.
	if f.Manager != "active" && !completed(c.seen.SMI.Value.GPUs) {
		state := f.Manager
		if state == "" {
			state = "not installed"
		}
		c.raise(CodeFabricManager, "%d NVSwitches, nvidia-fabricmanager is %s%s", switches, state, quoted(f.ManagerMessage))
	}
}

func completed(gpus []host.GPU) bool {
	for _, g := range gpus {
		if !strings.EqualFold(g.Fabric, "Completed") {
			return false
		}
	}
	return len(gpus) > 0
}

// toolkit looks for leftovers and for what the plan leaves alone.
func (c *check) toolkit() {
	t := c.seen.Toolkit.Value
	c.wiring()
	if t.OperatorCopy && c.want.Mode != ModeOperator {
		c.raise(CodeOperatorCopy, "k3s would run %s", t.Runtime)
	}
	if v := upstream(c.want.Toolkit.Version); v != "" && t.Version != "" && compare(t.Version, v) > 0 && !ours(c.seen) {
		c.raise(CodeToolkitNewer, "%s is installed, the set has %s", t.Version, v)
	}
	if s := c.seen.Packages.Value.NVIDIASources; len(s) > 1 {
		f := diag.Found(CodeAptSourceConflict, c.want.Machine, strings.Join(s, ", "))
		f.Severity = diag.Warns // a conflict only where they name different keys
		c.found = append(c.found, f)
	}
}
