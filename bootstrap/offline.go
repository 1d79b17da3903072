package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/gpuctl/gpuctl/bootstrap/host"
	"github.com/gpuctl/gpuctl/bootstrap/k3s"
	"github.com/gpuctl/gpuctl/bootstrap/nvidia"
	"github.com/gpuctl/gpuctl/bootstrap/plan"
	"github.com/gpuctl/gpuctl/bootstrap/spread"
	"github.com/gpuctl/gpuctl/charts"
	"github.com/gpuctl/gpuctl/internal/bundle"
	"github.com/gpuctl/gpuctl/internal/diag"
	"github.com/gpuctl/gpuctl/internal/inventory"
)

// Where packages of a bundle lie on a machine: apt reads them by file: URLs.
const (
	packagesDir = "/var/lib/gpuctl/packages"
	toolkitDir  = packagesDir + "/toolkit"
	driverDir   = packagesDir + "/driver"
)

// sendLimit bounds sending one large file over a slow uplink.
const sendLimit = 3 * time.Hour

// offline is a bundle in use.
type offline struct {
	*bundle.Bundle
	// charts are paths of its charts on this computer, by checksum.
	charts map[string]string
}

// takeBundle lays a bundle's charts where Helm finds them.
func takeBundle(b *bundle.Bundle, dir string) (*offline, error) {
	o := &offline{Bundle: b, charts: map[string]string{}}
	if dir == "" {
		return nil, errors.New("using the bundle: there is no folder for its charts")
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("using the bundle: %w", err)
	}
	for _, f := range b.Files {
		if f.Kind != bundle.Chart {
			continue
		}
		r, err := b.Reader(f)
		if err != nil {
			return nil, err
		}
		data, err := io.ReadAll(r)
		if err != nil {
			return nil, fmt.Errorf("using the bundle: %w", err)
		}
		at := filepath.Join(dir, f.SHA256+".tgz")
		// Whoever uses it checks its digest.
		if err := os.WriteFile(at, data, 0o600); err != nil {
			return nil, fmt.Errorf("using the bundle: %w", err)
		}
		o.charts[f.SHA256] = at
	}
	return o, nil
}

// bundled is a chart as the bundle has it, or as it was.
func (w wanted) bundled(c charts.Chart) charts.Chart {
	if w.bundle == nil {
		return c
	}
	for _, f := range w.bundle.All(bundle.Chart, "") {
		if f.Name == c.Name && f.Version == c.Version && (c.SHA256 == "" || c.SHA256 == f.SHA256) {
			c.Repository, c.SHA256 = w.bundle.charts[f.SHA256], f.SHA256
		}
	}
	return c
}

// bundledK3s is the binary of the bundle for a machine.
func (w wanted) bundledK3s(f host.Facts) spread.File {
	if w.bundle == nil {
		return spread.File{}
	}
	file, ok := w.bundle.Find(bundle.K3s, "k3s", arch(f))
	if !ok {
		return spread.File{}
	}
	return w.bundle.spreadable(file)
}

// spreadable is a file of the bundle as it goes to machines.
func (o *offline) spreadable(f bundle.File) spread.File {
	name := f.Name
	if f.Kind == bundle.Images || f.Kind == bundle.Packages {
		name += " " + string(f.Kind)
	}
	return spread.File{Name: name, SHA256: f.SHA256, Size: f.Size, Open: func(_ context.Context, offset int64) (io.ReadCloser, error) {
		r, err := o.Reader(f)
		if err != nil {
			return nil, err
		}
		if _, err := r.Seek(offset, io.SeekStart); err != nil {
			return nil, err
		}
		return io.NopCloser(r), nil
	}}
}

// spreading lays a file on a machine by the run's spreader; nil without one.
func spreading(m inventory.Machine, net Network, do doer) func(context.Context, spread.File, spread.Place, plan.Say) error {
	if do.spread == nil {
		return nil
	}
	first, _, _ := strings.Cut(net.Addresses[m.Name].NodeIP, ",")
	address, _ := netip.ParseAddr(first) // none: then nobody fetches from there
	return func(ctx context.Context, f spread.File, to spread.Place, say plan.Say) error {
		return do.spread.Lay(ctx, spread.Machine{Name: m.Name, On: do.on(m.Name), Address: address}, f, to, say)
	}
}

// offline adds what has to be sent before other actions can do without the
// internet: packages before they are installed, images before they are run.
func (w wanted) offline(b *book, s sight, do doer) {
	if w.bundle == nil {
		return
	}
	for _, m := range w.machines {
		if b.out[m.Name] {
			continue
		}
		facts, lay := s.facts[m.Name], spreading(m, b.network, do)
		for id, file := range w.packagesFor(m, facts) {
			to := toolkitDir
			if id == nvidia.DriverID(m.Name) {
				to = driverDir
			}
			w.before(b, []string{id}, w.sending(m, file, spread.Place{Path: to, Unpack: true}, lay))
		}
		using := []string{k3s.ActionID(m.Name), operatorID, pluginID, smokeID(m.Name)}
		for _, file := range w.bundle.All(bundle.Images, arch(facts)) {
			w.before(b, using, w.sending(m, file, spread.Place{Path: imagePath(w.k3s(m, s, b.network), file)}, lay))
		}
	}
}

// packagesFor are the bundle's packages for a machine, by the action that installs them.
func (w wanted) packagesFor(m inventory.Machine, f host.Facts) map[string]bundle.File {
	out := map[string]bundle.File{}
	if file, ok := w.bundle.Find(bundle.Packages, "toolkit", arch(f)); ok {
		out[m.Name+"/toolkit"] = file
	}
	if file, ok := w.bundle.Find(bundle.Packages, "driver-"+systemOf(f), arch(f)); ok {
		out[nvidia.DriverID(m.Name)] = file
	}
	return out
}

// systemOf names a system as NVIDIA's repositories do: ubuntu2404.
func systemOf(f host.Facts) string {
	return f.OS.Value.BaseID + strings.ReplaceAll(f.OS.Value.BaseVersion, ".", "")
}

// imagePath is where k3s imports an archive from. The name holds its checksum:
// an archive that is there is the right one.
func imagePath(want k3s.Want, f bundle.File) string {
	return want.Data() + "/agent/images/gpuctl-" + f.Name + "-" + f.SHA256[:12] + f.Suffix
}

func (w wanted) sending(m inventory.Machine, f bundle.File, to spread.Place, lay func(context.Context, spread.File, spread.Place, plan.Say) error) plan.Action {
	file := w.bundle.spreadable(f)
	return plan.Action{
		ID: m.Name + "/bundle-" + f.Name + "-" + string(f.Kind), Machine: m.Name, Ahead: true, Timeout: sendLimit,
		Title:   "send " + file.Name + ", " + spread.Bytes(f.Size),
		Reason:  "the machine takes nothing from the internet",
		Changes: []string{w.bundle.Path + " -> " + to.Path, "sha256 " + f.SHA256},
		Apply: func(ctx context.Context, say plan.Say) error {
			return lay(ctx, file, to, say)
		},
	}
}

// before adds an action that others need, where one of those is pending.
func (w wanted) before(b *book, ids []string, a plan.Action) {
	needed := false
	for i := range b.actions {
		if slices.Contains(ids, b.actions[i].ID) {
			b.actions[i].Needs = append(slices.Clone(b.actions[i].Needs), a.ID)
			needed = true
		}
	}
	if needed {
		b.actions = append([]plan.Action{a}, b.actions...)
	}
}

// bundleLacks says what a machine's actions want and the bundle has not.
func (w wanted) bundleLacks(m inventory.Machine, f host.Facts, actions []plan.Action) []diag.Finding {
	if w.bundle == nil {
		return nil
	}
	pending := func(id string) bool {
		return slices.ContainsFunc(actions, func(a plan.Action) bool { return a.ID == id })
	}
	var lacks []string
	if pending(k3s.BinaryID(m.Name)) {
		if have, ok := w.bundle.Find(bundle.K3s, "k3s", arch(f)); !ok || have.Version != w.kubernetes() {
			lacks = append(lacks, fmt.Sprintf("k3s %s for %s", w.kubernetes(), arch(f)))
		}
	}
	if pending(k3s.ActionID(m.Name)) && len(w.bundle.All(bundle.Images, arch(f))) == 0 {
		lacks = append(lacks, "images for "+arch(f))
	}
	have, want := w.packagesFor(m, f), w.nvidia(m)
	if toolkit, ok := have[m.Name+"/toolkit"]; pending(m.Name+"/toolkit") && (!ok || toolkit.Version != want.Toolkit.Version) {
		lacks = append(lacks, fmt.Sprintf("NVIDIA Container Toolkit %s for %s", want.Toolkit.Version, arch(f)))
	}
	if driver, ok := have[nvidia.DriverID(m.Name)]; pending(nvidia.DriverID(m.Name)) && (!ok || driver.Version != want.Driver.Branch) {
		lacks = append(lacks, fmt.Sprintf("driver %s for %s on %s", want.Driver.Branch, systemOf(f), arch(f)))
	}
	if rel, ok := w.gpuRelease(sight{}); ok && w.bundle.charts[rel.Chart.SHA256] == "" {
		lacks = append(lacks, "chart "+rel.Chart.Name+" "+rel.Chart.Version)
	}
	if len(lacks) == 0 {
		return nil
	}
	return []diag.Finding{diag.Found("bundle-lacks", m.Name, fmt.Sprintf("%s (set %s) has no %s", w.bundle.Path, w.bundle.Set, strings.Join(lacks, ", ")))}
}
