package cuda

import (
	"regexp"
	"strconv"
	"strings"
)

// Image is what the configuration of an image says of CUDA.
type Image struct {
	// CUDA is the toolkit it was built with, "12.4.1"; empty where it does not say.
	CUDA string
	// Require is what its NVIDIA_REQUIRE_* variables ask for; all must be met.
	Require []Requirement
	// Malformed is why one of them cannot be read.
	Malformed string
	// Compat: it brings the libraries of forward compatibility (cuda-compat).
	Compat bool
	// Unchecked: NVIDIA_DISABLE_REQUIRE is set. The container starts whatever the
	// driver is, which proves nothing.
	Unchecked bool
}

var (
	numbered      = regexp.MustCompile(`^[0-9]+\.[0-9]+(\.[0-9]+)?`)
	compatPackage = regexp.MustCompile(`\bcuda-compat-[0-9]+-[0-9]+\b`)
)

// OfConfig reads an image's environment ("NAME=value") and the commands it was
// built by. Sources of the names: NVIDIA's Dockerfiles (CUDA_VERSION,
// NV_CUDA_CUDART_VERSION, NV_CUDA_COMPAT_PACKAGE) and those of NGC's frameworks
// (_CUDA_COMPAT_PATH).
func OfConfig(env, history []string) Image {
	var i Image
	set := map[string]string{}
	for _, e := range env {
		name, value, _ := strings.Cut(e, "=")
		set[name] = value
		if strings.HasPrefix(name, "NVIDIA_REQUIRE_") {
			r, err := ParseRequirement(value)
			switch {
			case err != nil:
				i.Malformed = name + ": " + err.Error()
			case len(r) > 0:
				i.Require = append(i.Require, r)
			}
		}
	}
	// cudart's version begins as the toolkit's does: 12.4.127 is of 12.4.
	for _, name := range []string{"CUDA_VERSION", "NV_CUDA_LIB_VERSION", "NV_CUDA_CUDART_VERSION"} {
		if v := numbered.FindString(set[name]); v != "" && i.CUDA == "" {
			i.CUDA = v
			if name == "NV_CUDA_CUDART_VERSION" {
				i.CUDA = strings.Join(strings.SplitN(v, ".", 3)[:2], ".")
			}
		}
	}
	i.Unchecked, _ = strconv.ParseBool(set["NVIDIA_DISABLE_REQUIRE"])
	i.Compat = set["NV_CUDA_COMPAT_PACKAGE"] != "" || set["_CUDA_COMPAT_PATH"] != "" || compatPackage.MatchString(strings.Join(history, "\n"))
	return i
}

// require says whether what the image asks for is met, for every brand that the
// driver may call the card by; why is for maybe.
func (i Image) require(driver string, g GPU) (t truth, why string) {
	if i.Unchecked {
		return yes, ""
	}
	brands := g.brands()
	if len(brands) == 0 {
		brands = []string{""}
	}
	all, some := yes, no
	for _, b := range brands {
		met := yes
		for _, r := range i.Require {
			met = min(met, r.holds(facts{Serves(driver), driver, g.Compute, b}))
		}
		all, some = min(all, met), max(some, met)
	}
	if all == some && all != maybe {
		return all, ""
	}
	return maybe, "it asks for " + i.shortest() + " and more, of which it is not known whether " + g.Name + " with driver " + driver + " meets it"
}

// asksCUDA is the least CUDA that its first alternative asks for.
func (i Image) asksCUDA() string {
	for _, r := range i.Require {
		for _, t := range r[0] {
			if t.Property == "cuda" && t.Operator == ">=" {
				return t.Value
			}
		}
	}
	return ""
}

// shortest is the first alternative of what it asks for.
func (i Image) shortest() string {
	for _, r := range i.Require {
		return Requirement{r[0]}.String()
	}
	return ""
}

// namesBranch: one of its requirements tells which drivers its cuda-compat serves.
func (i Image) namesBranch() bool {
	for _, r := range i.Require {
		for _, all := range r {
			for _, t := range all {
				if t.Property == "driver" {
					return true
				}
			}
		}
	}
	return false
}
