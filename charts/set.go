package charts

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"sort"
	"strings"

	"github.com/goccy/go-yaml"
)

//go:embed sets/*.yaml
var setFiles embed.FS

// DefaultSet is the name of the set that is used when the user names none.
const DefaultSet = "26.7"

// Set is a tested set of versions: what gpuctl installs together. A set read
// from a user's own file has Untested set.
type Set struct {
	APIVersion string      `yaml:"apiVersion" json:"apiVersion"`
	Kind       string      `yaml:"kind" json:"kind"`
	Name       string      `yaml:"name" json:"name"`
	K3s        K3sPin      `yaml:"k3s" json:"k3s"`
	Toolkit    ToolkitPin  `yaml:"toolkit" json:"toolkit"`
	Driver     DriverPin   `yaml:"driver" json:"driver"`
	Operator   OperatorPin `yaml:"operator" json:"operator"`
	// Plugin is absent in a set that knows none.
	Plugin     PluginPin     `yaml:"devicePlugin,omitempty" json:"devicePlugin,omitzero"`
	Smoke      SmokePin      `yaml:"smoke" json:"smoke"`
	Kubernetes KubernetesPin `yaml:"kubernetes" json:"kubernetes"`
	// OS maps an os-release ID to the VERSION_IDs that the operator's vendor validated with k3s.
	OS map[string][]string `yaml:"os" json:"os"`

	// Untested is true for a set from a user's own file: nobody ran these versions together for gpuctl.
	Untested bool `yaml:"-" json:"untested,omitempty"`
	// Source is the file the set was read from, empty for one that is built in.
	Source string `yaml:"-" json:"source,omitempty"`
}

// K3sPin pins k3s.
type K3sPin struct {
	// Version is the release's name: v1.36.3+k3s1.
	Version string `yaml:"version" json:"version"`
	// SHA256 maps amd64 and arm64 to the checksum of the k3s binary, in lower-case
	// hex. Where one is missing the release's own checksum list serves, and the plan says so.
	SHA256 map[string]string `yaml:"sha256,omitempty" json:"sha256,omitempty"`
}

// ToolkitPin pins the NVIDIA Container Toolkit packages on the machines.
type ToolkitPin struct {
	// Version is the package version with its revision: 1.20.0-1.
	Version string `yaml:"version" json:"version"`
	// Repository is the apt repository's base URL; the architecture follows as a path element.
	Repository string `yaml:"repository" json:"repository"`
	// RPMRepository is the URL of the .repo file.
	RPMRepository string `yaml:"rpmRepository,omitempty" json:"rpmRepository,omitempty"`
	// KeyURL is where the repository's signing key is, KeyFingerprint what it must be (40 hex digits).
	KeyURL         string `yaml:"keyURL" json:"keyURL"`
	KeyFingerprint string `yaml:"keyFingerprint" json:"keyFingerprint"`
}

// DriverPin is the driver branch that is installed where a machine has none.
type DriverPin struct {
	Branch string `yaml:"branch" json:"branch"`
	// KeyFingerprint is that of NVIDIA's CUDA package repository.
	KeyFingerprint string `yaml:"keyFingerprint,omitempty" json:"keyFingerprint,omitempty"`
	// Keys are fingerprints of repositories with a key of their own, by the
	// repository's name ("debian13").
	Keys map[string]string `yaml:"keys,omitempty" json:"keys,omitempty"`
	// Images are those from which the GPU Operator brings a driver (driver.mode: operator).
	Images DriverImages `yaml:"images,omitempty" json:"images,omitzero"`
}

// DriverImages are the operator's driver images. A tag is VERSION-OS:
// "580.173.02-ubuntu24.04".
type DriverImages struct {
	// Repository is where they are: nvcr.io/nvidia/driver.
	Repository string `yaml:"repository,omitempty" json:"repository,omitempty"`
	// Versions are the drivers that the operator's release ships.
	Versions []string `yaml:"versions,omitempty" json:"versions,omitempty"`
	// OS are os-release's ID and VERSION_ID as one word: "ubuntu24.04".
	OS []string `yaml:"os,omitempty" json:"os,omitempty"`
}

// Version is the image's driver of a branch ("580"), "" where there is none.
func (i DriverImages) Version(branch string) string {
	for _, v := range i.Versions {
		if strings.HasPrefix(v, branch+".") {
			return v
		}
	}
	return ""
}

// PluginPin pins the chart of the stand-alone device plugin, for clusters without the GPU Operator.
type PluginPin struct {
	Chart      string `yaml:"chart" json:"chart"`
	Repository string `yaml:"repository" json:"repository"`
	Version    string `yaml:"version" json:"version"`
	// SHA256 is that of the chart archive; empty trusts the repository's index.
	SHA256    string `yaml:"sha256,omitempty" json:"sha256,omitempty"`
	Namespace string `yaml:"namespace" json:"namespace"`
}

// OperatorPin pins the GPU Operator's chart.
type OperatorPin struct {
	Chart string `yaml:"chart" json:"chart"`
	// Repository is an https URL with an index.yaml, an oci:// URL, or a local directory.
	Repository string `yaml:"repository" json:"repository"`
	Version    string `yaml:"version" json:"version"`
	// SHA256 is that of the chart archive; empty trusts the repository's index.
	SHA256    string `yaml:"sha256,omitempty" json:"sha256,omitempty"`
	Namespace string `yaml:"namespace" json:"namespace"`
	// RuntimePath is how pods get GPUs: "cdi" or "runtimeClass".
	RuntimePath string `yaml:"runtimePath" json:"runtimePath"`
	// Values are laid over the values that the facts demand and under the user's own.
	Values map[string]any `yaml:"values,omitempty" json:"values,omitempty"`
}

// SmokePin is the image that proves a GPU.
type SmokePin struct {
	Image string `yaml:"image" json:"image"`
	// Digest is sha256:..., empty where none is known: then the tag is pulled.
	Digest string `yaml:"digest,omitempty" json:"digest,omitempty"`
	// VectorAdd lists where the program may lie in the image; the first that exists is run.
	VectorAdd []string `yaml:"vectorAdd" json:"vectorAdd"`
	// CUDA is the version the image was built with, MinDriver the lowest driver it runs on.
	CUDA      string `yaml:"cuda" json:"cuda"`
	MinDriver string `yaml:"minDriver" json:"minDriver"`
}

// Ref is the reference to pull: by digest where one is known.
func (p SmokePin) Ref() string {
	if p.Digest == "" {
		return p.Image
	}
	base := p.Image
	if slash := strings.LastIndex(base, "/"); strings.LastIndex(base, ":") > slash {
		base = base[:strings.LastIndex(base, ":")]
	}
	return base + "@" + p.Digest
}

// KubernetesPin is the range of Kubernetes minors the operator's vendor validated on k3s.
type KubernetesPin struct {
	Validated []string `yaml:"validated" json:"validated"`
	// Floor is the lowest minor gpuctl touches on a cluster it did not make.
	Floor string `yaml:"floor" json:"floor"`
}

// Names returns the names of the built-in sets, newest first.
func Names() []string {
	entries, err := fs.ReadDir(setFiles, "sets")
	if err != nil {
		return nil
	}
	var names []string
	for _, e := range entries {
		names = append(names, strings.TrimSuffix(e.Name(), ".yaml"))
	}
	sort.Sort(sort.Reverse(sort.StringSlice(names)))
	return names
}

// Load returns a built-in set by its name, or reads a user's own file. The empty
// string is DefaultSet. Anything with a path separator or ending in .yaml, .yml or
// .json is a file. Errors of a file carry line and column.
func Load(nameOrPath string) (Set, error) {
	if nameOrPath == "" {
		nameOrPath = DefaultSet
	}
	if isFile(nameOrPath) {
		return loadFile(nameOrPath)
	}
	text, err := setFiles.ReadFile(path.Join("sets", nameOrPath+".yaml"))
	if errors.Is(err, fs.ErrNotExist) {
		return Set{}, fmt.Errorf("loading set %q: no such set; known are %s, or give the path of a file", nameOrPath, strings.Join(Names(), ", "))
	}
	if err != nil {
		return Set{}, fmt.Errorf("loading set %q: %w", nameOrPath, err)
	}
	set, err := ParseSet(text)
	if err != nil {
		return Set{}, fmt.Errorf("loading set %q: %w", nameOrPath, err)
	}
	return set, nil
}

func loadFile(file string) (Set, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return Set{}, fmt.Errorf("loading set: %w", err)
	}
	set, err := ParseSet(text)
	if err != nil {
		return Set{}, fmt.Errorf("loading set %s: %w", file, err)
	}
	set.Untested, set.Source = true, file
	if set.Name == "" {
		set.Name = strings.TrimSuffix(filepath.Base(file), filepath.Ext(file))
	}
	return set, nil
}

func isFile(s string) bool {
	if strings.ContainsAny(s, `/\`) {
		return true
	}
	switch filepath.Ext(s) {
	case ".yaml", ".yml", ".json":
		return true
	}
	return false
}

// ParseSet decodes a set strictly (an unknown key is an error with its line and
// column) and checks every field; all faults are told at once.
func ParseSet(text []byte) (Set, error) {
	var set Set
	if err := yaml.UnmarshalWithOptions(text, &set, yaml.Strict()); err != nil {
		return Set{}, errors.New(yaml.FormatError(err, false, true))
	}
	if err := set.check(); err != nil {
		return Set{}, err
	}
	return set, nil
}

// Checksum returns the pinned SHA-256 of the k3s binary for an architecture
// ("amd64", "arm64"), and whether the set knows one.
func (s Set) Checksum(arch string) (string, bool) {
	sum, ok := s.K3s.SHA256[arch]
	return sum, ok && sum != ""
}

// Validates says whether the operator's vendor validated this operating system
// (os-release ID and VERSION_ID) with k3s.
func (s Set) Validates(id, version string) bool {
	for _, v := range s.OS[id] {
		if v == version {
			return true
		}
	}
	return false
}
