package nvidia

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/gpuctl/gpuctl/bootstrap/host"
	"github.com/gpuctl/gpuctl/internal/diag"
)

// Images are the GPU Operator's driver images. A tag is VERSION-OS, the latter
// os-release's ID and VERSION_ID: NVIDIA/gpu-operator#2225.
type Images struct {
	Repository   string
	Versions, OS []string
}

// OperatorLabels keep the GPU Operator's driver and toolkit off a node whose
// machine has its own: the operator leaves a deploy label alone that is there
// (its getting-started page).
func OperatorLabels() map[string]string {
	return map[string]string{"nvidia.com/gpu.deploy.driver": "false", "nvidia.com/gpu.deploy.container-toolkit": "false"}
}

// operatorDriver says why the GPU Operator cannot bring a machine's driver: one
// is there already (the operator would skip the node for ever), or there is no
// image for the system. The driver that the operator brought itself leaves no
// trace on the machine but the loaded module.
func (c *check) operatorDriver(d host.Driver) {
	if d.FileVersion != "" || d.LibraryVersion != "" || d.Runfile || c.seen.SMI.Has() {
		c.raise(CodeDriverMode, "driver.mode is operator, and the machine has a driver of its own (%s)", or(d.LoadedVersion, or(d.FileVersion, d.LibraryVersion)))
		return
	}
	if _, no := operatorImage(c.want, c.seen); no != nil {
		c.found = append(c.found, *no)
	}
	if d.LoadedVersion != "" {
		c.flavour(d)
	}
}

// operatorImage is the driver image of a machine, or the finding that says why
// there is none.
func operatorImage(want Want, seen host.Facts) (string, *diag.Finding) {
	refuse := func(code diag.Code, format string, args ...any) (string, *diag.Finding) {
		f := diag.Found(code, want.Machine, fmt.Sprintf(format, args...))
		return "", &f
	}
	choice, no := Choose(want, seen)
	if no != nil {
		return "", no
	}
	if !seen.OS.Has() {
		return refuse(CodeDriverImage, "the operating system is not known")
	}
	os := seen.OS.Value.ID + seen.OS.Value.VersionID
	version := ""
	for _, v := range want.Images.Versions {
		if strings.HasPrefix(v, strconv.Itoa(choice.Branch)+".") {
			version = v
			break
		}
	}
	image := fmt.Sprintf("%s:%s-%s", or(want.Images.Repository, "nvcr.io/nvidia/driver"), or(version, strconv.Itoa(choice.Branch)), os)
	switch {
	case !slices.Contains(want.Images.OS, os):
		return refuse(CodeDriverImage, "%s: there is no image for %s", image, or(seen.OS.Value.PrettyName, os))
	case version == "":
		return refuse(CodeDriverImage, "%s: the set knows images of %s", image, strings.Join(want.Images.Versions, ", "))
	case seen.SecureBoot.Has() && seen.SecureBoot.Value:
		return refuse(CodeSecureBoot, "Secure Boot is on, and the GPU Operator signs no modules")
	case seen.OS.Value.ID == "ubuntu" && !regexp.MustCompile(`^[0-9.]+-[0-9]+-[a-z0-9-]+$`).MatchString(seen.System.Value.Kernel):
		// The driver container takes the kernel's headers from Ubuntu's archive.
		return refuse(CodeDriverImage, "%s: kernel %s is not one of Ubuntu's, the image finds no headers for it", image, seen.System.Value.Kernel)
	}
	return image, nil
}

func or(a, b string) string {
	if a != "" {
		return a
	}
	return b
}
