// Package cuda says whether a container image runs with a driver on a GPU: what
// the image was built with and asks for, against what driver and card give. It
// is pure and knows three answers: what is not known is unknown, never guessed.
//
// Rules and tables: docs.nvidia.com/deploy/cuda-compatibility, the CUDA Toolkit
// release notes (table of driver versions), and the check that the NVIDIA
// Container Toolkit itself does (NVIDIA/nvidia-container-toolkit, internal/requirements).
package cuda

import "fmt"

// Answer is whether an image runs.
type Answer string

const (
	// Runs: everything it asks for is there.
	Runs Answer = "runs"
	// Fails: something it needs is not there.
	Fails Answer = "fails"
	// Unknown: the image does not say, or the machine was not seen.
	Unknown Answer = "unknown"
)

// Entries of the failure catalogue that a verdict may name.
const (
	CodeNeedsDriver = "image-needs-newer-driver"
	CodeDropsGPU    = "image-drops-gpu"
	CodeBeforeGPU   = "image-older-than-gpu"
	CodeNotJudged   = "image-not-judged"
)

// GPU is what counts of a card.
type GPU struct {
	// Name is the product name as nvidia-smi prints it.
	Name string
	// Compute is the compute capability, "9.0"; empty where it is not known.
	Compute string
}

// Node is a machine or node that is to run an image.
type Node struct {
	// Driver is the version of the loaded driver, empty where it is not known.
	Driver string
	GPUs   []GPU
}

// Verdict is the answer with its reason, and the entry that explains it.
type Verdict struct {
	Answer Answer
	// Code is empty for an image that runs.
	Code string
	// Reason is one line, also for an image that runs.
	Reason string
}

// Decide judges an image for a node; the worst of its GPUs counts, for a pod
// may get any of them.
func Decide(image Image, node Node) Verdict {
	switch {
	case !image.says():
		return Verdict{Unknown, CodeNotJudged, "its configuration says nothing of CUDA"}
	case image.Malformed != "":
		return Verdict{Unknown, CodeNotJudged, "what it asks for cannot be read: " + image.Malformed}
	case len(node.GPUs) == 0:
		return Verdict{Unknown, CodeNotJudged, "its GPUs were not seen"}
	}
	rank := map[Answer]int{Runs: 0, Unknown: 1, Fails: 2}
	worst := Verdict{Answer: Runs}
	for i, g := range node.GPUs {
		v := judge(image, node.Driver, g)
		if i == 0 || rank[v.Answer] > rank[worst.Answer] {
			worst = v
		}
	}
	return worst
}

func judge(image Image, driver string, g GPU) Verdict {
	if v, no := image.dropped(g); no {
		return v
	}
	if driver == "" {
		return Verdict{Unknown, CodeNotJudged, "no driver is loaded there"}
	}
	met, why := image.require(driver, g)
	if met == no {
		return Verdict{Fails, CodeNeedsDriver, image.needs(driver)}
	}
	if v, decided := image.floor(driver, g, met); decided {
		return v
	}
	if met == maybe {
		return Verdict{Unknown, CodeNotJudged, why}
	}
	// Blackwell came with CUDA 12.8; programs with PTX for an older card may still run.
	if image.CUDA != "" && g.Compute != "" && Compare(g.Compute, "10.0") >= 0 && Compare(image.CUDA, "12.8") < 0 {
		return Verdict{Unknown, CodeBeforeGPU, fmt.Sprintf("built with CUDA %s, which does not know compute capability %s (%s): it runs only if it brings PTX", image.CUDA, g.Compute, g.Name)}
	}
	return Verdict{Answer: Runs, Reason: image.remark(driver)}
}

// dropped: CUDA 13.0 compiles no more for Maxwell, Pascal and Volta (release notes).
func (i Image) dropped(g GPU) (Verdict, bool) {
	if i.CUDA == "" || g.Compute == "" || major(i.CUDA) < 13 || Compare(g.Compute, "7.5") >= 0 {
		return Verdict{}, false
	}
	return Verdict{Fails, CodeDropsGPU, fmt.Sprintf("built with CUDA %s, and CUDA 13 dropped compute capability %s (%s)", i.CUDA, g.Compute, g.Name)}, true
}

// floor holds the driver against the least one of the image's CUDA major, and
// against forward compatibility below that.
func (i Image) floor(driver string, g GPU, met truth) (Verdict, bool) {
	if i.CUDA == "" {
		return Verdict{}, false
	}
	least, known := Floor(major(i.CUDA))
	if !known {
		return Verdict{Unknown, CodeNotJudged, "CUDA " + i.CUDA + " is in no table of this version"}, true
	}
	if Compare(driver, least) >= 0 {
		return Verdict{}, false
	}
	short := fmt.Sprintf("CUDA %d needs driver %s or later, and %s is loaded", major(i.CUDA), least, driver)
	switch class := g.class(); {
	case !i.Compat || class == geForce:
		return Verdict{Fails, CodeNeedsDriver, short}, true
	case class == dataCentre && met == yes && i.namesBranch():
		return Verdict{Answer: Runs, Reason: fmt.Sprintf("by forward compatibility: it brings cuda-compat and allows driver %s on %s", driver, g.Name)}, true
	case class == dataCentre:
		return Verdict{Unknown, CodeNotJudged, short + "; its cuda-compat may bridge that, for which drivers it does not say"}, true
	}
	return Verdict{Unknown, CodeNotJudged, fmt.Sprintf("%s; whether its cuda-compat serves %s is not known", short, g.Name)}, true
}

// needs is what an unmet requirement asks for, in terms a person can act on.
func (i Image) needs(driver string) string {
	text := "it asks for " + i.shortest()
	if v := i.asksCUDA(); v != "" {
		text = "it asks for CUDA " + v
		if d := firstDriver(v); d != "" {
			text += fmt.Sprintf(" (driver %s or later)", d)
		}
	}
	return fmt.Sprintf("%s, and driver %s serves %s", text, driver, serves(driver))
}

func serves(driver string) string {
	if v := Serves(driver); v != "" {
		return "CUDA " + v
	}
	return "a CUDA before 11"
}

// remark tells on what an image that runs rests.
func (i Image) remark(driver string) string {
	if i.CUDA == "" {
		return "what it asks for is met: " + serves(driver)
	}
	if least := minorFloor(i.CUDA); least != "" && Compare(driver, least) < 0 {
		return fmt.Sprintf("by minor-version compatibility: built with CUDA %s (driver %s), driver %s serves %s; what is compiled at run time may fail",
			i.CUDA, least, driver, serves(driver))
	}
	return fmt.Sprintf("built with CUDA %s, driver %s serves %s", i.CUDA, driver, serves(driver))
}

// says: there is something to judge it by.
func (i Image) says() bool {
	return i.CUDA != "" || i.Malformed != "" || len(i.Require) > 0
}
