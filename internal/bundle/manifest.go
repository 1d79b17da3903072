// Package bundle is one file with everything that a cluster of machines without
// the internet needs: k3s, packages, charts, images. It is a tar archive of a
// manifest and blobs that are named by their SHA-256, so that what comes out is
// what the manifest says, or an error.
package bundle

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Kind says what a file of a bundle is for.
type Kind string

// The kinds of files.
const (
	// K3s is the binary of k3s for one architecture.
	K3s Kind = "k3s"
	// Images is an archive that containerd imports.
	Images Kind = "images"
	// Packages is a tar archive of apt repositories, as a mirror of them is laid out.
	Packages Kind = "packages"
	// Chart is a packed Helm chart.
	Chart Kind = "chart"
)

// Manifest says what a bundle holds.
type Manifest struct {
	APIVersion string    `json:"apiVersion"`
	Kind       string    `json:"kind"`
	Set        string    `json:"set"`
	Created    time.Time `json:"created"`
	// Files are in the order in which they lie in the archive.
	Files []File `json:"files"`
}

// File is one file of a bundle.
type File struct {
	Kind    Kind   `json:"kind"`
	Name    string `json:"name"`
	Version string `json:"version,omitempty"`
	// Arch is amd64 or arm64; empty where it does not matter.
	Arch string `json:"arch,omitempty"`
	// Suffix is how its name must end for those who tell by it: ".tar", ".tar.zst".
	Suffix string `json:"suffix,omitempty"`
	SHA256 string `json:"sha256"`
	Size   int64  `json:"size"`
	// Source is where it came from, Checked what said that it is the right one.
	Source  string `json:"source"`
	Checked string `json:"checked"`
	// License is an SPDX expression, or where the terms are.
	License string `json:"license"`
	// Holds are the images or packages in it.
	Holds []string `json:"holds,omitempty"`
}

const (
	apiVersion = "gpuctl.dev/v1alpha1"
	kindName   = "Bundle"
	// maxManifest bounds what is read as a manifest.
	maxManifest = 8 << 20
)

// ErrBundle is wrapped by errors about a bundle that is not what it says: make or fetch it again.
var ErrBundle = errors.New("the bundle cannot be used")

// ParseManifest reads a manifest strictly.
func ParseManifest(data []byte) (Manifest, error) {
	var m Manifest
	if len(data) > maxManifest {
		return m, fmt.Errorf("%w: its manifest has more than %d bytes", ErrBundle, maxManifest)
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&m); err != nil {
		return m, fmt.Errorf("%w: its manifest: %w", ErrBundle, err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return m, fmt.Errorf("%w: its manifest has something behind its end", ErrBundle)
	}
	if m.APIVersion != apiVersion || m.Kind != kindName {
		return m, fmt.Errorf("%w: its manifest is %s %s, this gpuctl reads %s %s", ErrBundle, m.APIVersion, m.Kind, apiVersion, kindName)
	}
	seen := map[string]bool{}
	for i, f := range m.Files {
		if err := f.check(); err != nil {
			return m, fmt.Errorf("%w: files[%d]: %w", ErrBundle, i, err)
		}
		if seen[f.SHA256] {
			return m, fmt.Errorf("%w: files[%d]: %s is there twice", ErrBundle, i, f.SHA256)
		}
		seen[f.SHA256] = true
	}
	return m, nil
}

// check keeps what may reach a file path or a terminal to plain words.
func (f File) check() error {
	word := regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._+~:-]{0,127}$`)
	switch {
	case !slices.Contains([]Kind{K3s, Images, Packages, Chart}, f.Kind):
		return fmt.Errorf("kind %q is not known", f.Kind)
	case !word.MatchString(f.Name):
		return fmt.Errorf("name %q is no plain word", f.Name)
	case f.Version != "" && !word.MatchString(f.Version):
		return fmt.Errorf("version %q is no plain word", f.Version)
	case !slices.Contains([]string{"", "amd64", "arm64"}, f.Arch):
		return fmt.Errorf("arch %q is neither amd64 nor arm64", f.Arch)
	case !slices.Contains([]string{"", ".tar", ".tgz", ".tar.gz", ".tar.zst"}, f.Suffix):
		return fmt.Errorf("suffix %q is not known", f.Suffix)
	case !checksum(f.SHA256):
		return fmt.Errorf("sha256 %q is not 64 lower-case hex digits", f.SHA256)
	case f.Size < 0:
		return fmt.Errorf("size %d is negative", f.Size)
	}
	for _, text := range append([]string{f.Source, f.Checked, f.License}, f.Holds...) {
		if strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 }) {
			return fmt.Errorf("%q holds control characters", text)
		}
	}
	return nil
}

func checksum(s string) bool {
	b, err := hex.DecodeString(s)
	return err == nil && len(b) == 32 && s == strings.ToLower(s)
}

// Find returns the file of a kind and name for an architecture; empty name or
// arch means any. A file that fits every architecture fits each.
func (m Manifest) Find(kind Kind, name, arch string) (File, bool) {
	for _, f := range m.Files {
		if f.Kind == kind && (name == "" || f.Name == name) && (arch == "" || f.Arch == "" || f.Arch == arch) {
			return f, true
		}
	}
	return File{}, false
}

// All returns the files of a kind for an architecture.
func (m Manifest) All(kind Kind, arch string) []File {
	var out []File
	for _, f := range m.Files {
		if f.Kind == kind && (f.Arch == "" || f.Arch == arch) {
			out = append(out, f)
		}
	}
	return out
}

// Size is that of all files.
func (m Manifest) Size() int64 {
	var n int64
	for _, f := range m.Files {
		n += f.Size
	}
	return n
}

// Licenses is the list of licences as text, a line for each file.
func (m Manifest) Licenses() string {
	var b strings.Builder
	b.WriteString("What this bundle holds, under which terms, and where it came from.\n\n")
	for _, f := range m.Files {
		fmt.Fprintf(&b, "%s %s %s %s\n  %s\n  %s\n", f.Kind, f.Name, f.Version, f.Arch, f.License, f.Source)
		for _, h := range f.Holds {
			fmt.Fprintf(&b, "  - %s\n", h)
		}
	}
	return b.String()
}
