package mirror

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	pathpkg "path"
	"path/filepath"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp/packet"
	"sigs.k8s.io/yaml"
)

// WriteK3s lays a k3s release below dir as GitHub serves it: the binary, the
// archive of its images where there is one, and the list of checksums of both.
func WriteK3s(dir, version, binary, images string) error {
	release := filepath.Join(dir, version)
	if err := os.MkdirAll(release, 0o755); err != nil {
		return fmt.Errorf("laying k3s %s: %w", version, err)
	}
	sum, err := SHA256(binary)
	if err != nil {
		return fmt.Errorf("laying k3s %s: %w", version, err)
	}
	if err := link(binary, filepath.Join(release, "k3s")); err != nil {
		return fmt.Errorf("laying k3s %s: %w", version, err)
	}
	list := sum + "  k3s\n"
	if images != "" {
		const name = "k3s-airgap-images-amd64.tar"
		if sum, err = SHA256(images); err != nil {
			return fmt.Errorf("laying k3s %s: %w", version, err)
		}
		if err := link(images, filepath.Join(release, name)); err != nil {
			return fmt.Errorf("laying k3s %s: %w", version, err)
		}
		list += sum + "  " + name + "\n"
	}
	return writeFile(filepath.Join(release, "sha256sum-amd64.txt"), []byte(list))
}

// WriteCharts lays a Helm repository below dir: the packed charts and an
// index.yaml with their digests.
func WriteCharts(dir string, charts []string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("laying charts: %w", err)
	}
	entries := map[string][]map[string]any{}
	for _, chart := range charts {
		meta, err := chartMeta(chart)
		if err != nil {
			return fmt.Errorf("laying chart %s: %w", chart, err)
		}
		entry := map[string]any{}
		if err := yaml.Unmarshal(meta, &entry); err != nil {
			return fmt.Errorf("laying chart %s: %w", chart, err)
		}
		name, ok := entry["name"].(string)
		if !ok {
			return fmt.Errorf("laying chart %s: its Chart.yaml has no name", chart)
		}
		digest, err := SHA256(chart)
		if err != nil {
			return fmt.Errorf("laying chart %s: %w", chart, err)
		}
		entry["digest"], entry["urls"] = digest, []string{filepath.Base(chart)}
		entry["created"] = "2026-01-01T00:00:00Z"
		entries[name] = append(entries[name], entry)
		if err := link(chart, filepath.Join(dir, filepath.Base(chart))); err != nil {
			return fmt.Errorf("laying chart %s: %w", chart, err)
		}
	}
	index, err := yaml.Marshal(map[string]any{
		"apiVersion": "v1", "generated": time.Now().UTC().Format(time.RFC3339), "entries": entries,
	})
	if err != nil {
		return fmt.Errorf("laying charts: %w", err)
	}
	return writeFile(filepath.Join(dir, "index.yaml"), index)
}

// chartMeta takes Chart.yaml out of a packed chart, where it lies in the one
// directory at the top.
func chartMeta(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	unzipped, err := gzip.NewReader(f)
	if err != nil {
		return nil, err
	}
	for r := tar.NewReader(unzipped); ; {
		h, err := r.Next()
		if err != nil {
			return nil, fmt.Errorf("looking for Chart.yaml: %w", err)
		}
		if ok, _ := pathpkg.Match("*/Chart.yaml", h.Name); ok {
			return io.ReadAll(io.LimitReader(r, 1<<20))
		}
	}
}

// link makes target the file source, by a hard link where both lie on one file
// system, else by a copy.
func link(source, target string) error {
	if err := os.Remove(target); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if os.Link(source, target) == nil {
		return nil
	}
	in, err := os.Open(source)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.Create(target)
	if err != nil {
		return err
	}
	if _, err := io.Copy(out, in); err != nil {
		out.Close()
		return err
	}
	return out.Close()
}

// SHA256 is the checksum of a file, in lower-case hex.
func SHA256(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

func packets(content []byte) *packet.Reader { return packet.NewReader(bytes.NewReader(content)) }
