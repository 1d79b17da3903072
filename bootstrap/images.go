package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/gpuctl/gpuctl/bootstrap/host"
	"github.com/gpuctl/gpuctl/bootstrap/k3s"
	"github.com/gpuctl/gpuctl/bootstrap/nvidia"
	"github.com/gpuctl/gpuctl/internal/cuda"
	"github.com/gpuctl/gpuctl/internal/diag"
	"github.com/gpuctl/gpuctl/internal/doctor"
	"github.com/gpuctl/gpuctl/internal/image"
	"github.com/gpuctl/gpuctl/internal/inventory"
	"github.com/gpuctl/gpuctl/internal/kube"
)

// ImageView says whether one image runs on one machine.
type ImageView struct {
	Image   string `json:"image"`
	Machine string `json:"machine"`
	// Answer is runs, fails or unknown; Reason is one line, whatever the answer.
	Answer cuda.Answer `json:"answer"`
	Reason string      `json:"reason"`
	// CUDA is what the image was built with, Driver what the machine runs; empty where not known.
	CUDA   string `json:"cuda,omitempty"`
	Driver string `json:"driver,omitempty"`

	code diag.Code
}

// imageLimit bounds reading one image's configuration: three small requests.
const imageLimit = 20 * time.Second

// imageKey is an image for an architecture.
type imageKey struct{ ref, arch string }

// imageRead is what came of reading one.
type imageRead struct {
	image cuda.Image
	err   error
}

// readImages reads configurations from their registries, all at once.
func (e *Engine) readImages(ctx context.Context, keys []imageKey, rootCAs []byte) map[imageKey]imageRead {
	from := image.Source{Mirror: sourceOf(e.want.config.Spec.Sources.Images), Mirrored: k3s.Mirrored(), RootCAs: rootCAs}
	ctx, cancel := context.WithTimeout(ctx, imageLimit)
	defer cancel()
	var mu sync.Mutex
	all := map[imageKey]imageRead{}
	var group errgroup.Group
	group.SetLimit(8)
	for _, k := range keys {
		group.Go(func() error {
			i, err := from.Read(ctx, k.ref, k.arch)
			mu.Lock()
			defer mu.Unlock()
			all[k] = imageRead{i, err}
			return nil
		})
	}
	_ = group.Wait() // what was not read stands in all
	return all
}

// judgeImages holds the images asked for against every machine with GPUs.
func (e *Engine) judgeImages(ctx context.Context, s sight, o CheckOptions) []ImageView {
	if len(o.Images) == 0 {
		return nil
	}
	wanted := map[imageKey]bool{}
	for _, f := range s.facts {
		for _, ref := range o.Images {
			wanted[imageKey{ref, arch(f)}] = true
		}
	}
	var keys []imageKey
	for k := range wanted {
		keys = append(keys, k)
	}
	read := e.readImages(ctx, keys, o.RegistryCA)
	out := []ImageView{}
	for _, ref := range o.Images {
		for _, m := range e.want.machines {
			f, seen := s.facts[m.Name]
			switch {
			case !seen:
				out = append(out, ImageView{Image: ref, Machine: m.Name, Answer: cuda.Unknown, Reason: "the machine was not reached", code: cuda.CodeNotJudged})
			case len(nvidia.GPUs(f)) > 0 || f.PCI.Unsure():
				out = append(out, e.want.judgeImage(ref, m, f, read[imageKey{ref, arch(f)}]))
			}
		}
	}
	return out
}

// judgeImage is pure.
func (w wanted) judgeImage(ref string, m inventory.Machine, f host.Facts, read imageRead) ImageView {
	node := nvidia.ForCUDA(f)
	v := ImageView{Image: ref, Machine: m.Name, CUDA: read.image.CUDA, Driver: node.Driver}
	if read.err != nil {
		v.Answer, v.Reason, v.code = cuda.Unknown, strings.Join(strings.Fields(read.err.Error()), " "), diag.CodeOf(read.err)
		var not *image.ReadError
		if errors.As(read.err, &not) && not.Absent {
			v.Answer = cuda.Fails
		}
		return v
	}
	said := cuda.Decide(read.image, node)
	v.Answer, v.Reason, v.code = said.Answer, said.Reason, diag.Code(said.Code)
	if d := w.driver(m); node.Driver == "" && said.Answer == cuda.Unknown && w.nvidia(m).Mode != nvidia.ModeKeep {
		v.Reason += fmt.Sprintf("; gpuctl would install branch %s, which serves CUDA %s", d.Branch, cuda.Serves(d.Branch+".999"))
	}
	return v
}

// imageFindings are the answers that are not "runs", each at its machine. An
// image that could not be read at all is said once.
func imageFindings(images []ImageView) []diag.Finding {
	var out []diag.Finding
	told := map[string]bool{}
	for _, v := range images {
		if v.code == "" {
			continue
		}
		machine, evidence := v.Machine, v.Image+": "+v.Reason
		if strings.HasPrefix(v.Reason, "reading image ") {
			machine, evidence = "", v.Reason
		}
		if !told[machine+evidence] {
			told[machine+evidence] = true
			out = append(out, diag.Found(v.code, machine, evidence))
		}
	}
	return out
}

// add takes findings in; those that block leave their machine out.
func (b *book) add(found []diag.Finding) {
	for _, f := range found {
		b.findings = append(b.findings, f)
		if f.Machine != "" && f.Severity == diag.Blocks {
			b.out[f.Machine] = true
		}
	}
}

// podImages reads the images of GPU pods that do not run, and says what the
// nodes have for them: as their machines show it, else by their labels. What
// cannot be read is left out.
func (e *Engine) podImages(ctx context.Context, s sight, o kube.Objects) (map[string]cuda.Image, map[string]cuda.Node) {
	hosts := map[string]cuda.Node{}
	architecture := "amd64"
	for _, n := range o.Nodes {
		f, seen := s.facts[n.Name]
		if host, known := doctor.HostOf(n); known {
			hosts[n.Name] = host
		}
		if node := nvidia.ForCUDA(f); seen && node.Driver != "" && len(node.GPUs) > 0 {
			hosts[n.Name] = node
		}
		if _, counts := hosts[n.Name]; counts && n.Status.NodeInfo.Architecture != "" {
			architecture = n.Status.NodeInfo.Architecture
		}
	}
	refs := doctor.Images(o)
	if len(hosts) == 0 || len(refs) == 0 {
		return nil, hosts
	}
	var keys []imageKey
	for _, ref := range refs {
		keys = append(keys, imageKey{ref, architecture})
	}
	images := map[string]cuda.Image{}
	for k, read := range e.readImages(ctx, keys, nil) {
		if read.err == nil {
			images[k.ref] = read.image
		}
	}
	return images, hosts
}

// pluginConfigs are the device plugin's configurations; none where the API does
// not give them: the doctor goes on without.
func (e *Engine) pluginConfigs(ctx context.Context) map[string]string {
	ctx, cancel := context.WithTimeout(ctx, imageLimit)
	defer cancel()
	client, _, err := e.api.connect(ctx)
	if err != nil {
		return nil
	}
	configs, err := client.PluginConfigs(ctx)
	if err != nil {
		return nil
	}
	return configs
}
