package mirror

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/armor"
	"github.com/ProtonMail/go-crypto/openpgp/clearsign"
)

// SigningKey returns the key that signs apt repositories, from file, and makes
// it first if the file does not exist.
func SigningKey(file string) (*openpgp.Entity, error) {
	content, err := os.ReadFile(file)
	if err == nil {
		entity, err := openpgp.ReadEntity(packets(content))
		if err != nil {
			return nil, fmt.Errorf("reading signing key %s: %w", file, err)
		}
		return entity, nil
	}
	if !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("reading signing key: %w", err)
	}
	entity, err := openpgp.NewEntity("gpuctl lab", "packages of the lab", "lab@gpuctl.invalid", nil)
	if err != nil {
		return nil, fmt.Errorf("making a signing key: %w", err)
	}
	var buf bytes.Buffer
	if err := entity.SerializePrivate(&buf, nil); err != nil {
		return nil, fmt.Errorf("making a signing key: %w", err)
	}
	if err := os.WriteFile(file, buf.Bytes(), 0o600); err != nil {
		return nil, fmt.Errorf("making a signing key: %w", err)
	}
	return entity, nil
}

// WriteApt lays an apt repository below dir as NVIDIA's libnvidia-container
// does: gpgkey, and a flat repository in stable/deb/amd64.
func WriteApt(dir string, debs []string, key *openpgp.Entity) error {
	return writeFlat(filepath.Join(dir, "stable", "deb", "amd64"), filepath.Join(dir, "gpgkey"), debs, key)
}

// WriteDrivers lays the repository of driver packages below dir, for Debian 12,
// as https://developer.download.nvidia.com/compute does: a flat one with the key in it.
func WriteDrivers(dir string, debs []string, key *openpgp.Entity) error {
	flat := filepath.Join(dir, "cuda", "repos", "debian12", "x86_64")
	return writeFlat(flat, filepath.Join(flat, "3bf863cc.pub"), debs, key)
}

// writeFlat lays a flat repository and its public key.
func writeFlat(flat, keyFile string, debs []string, key *openpgp.Entity) error {
	if err := os.MkdirAll(flat, 0o755); err != nil {
		return fmt.Errorf("laying the apt repository: %w", err)
	}
	var index bytes.Buffer
	slices.Sort(debs)
	for _, deb := range debs {
		entry, err := packageEntry(deb)
		if err != nil {
			return fmt.Errorf("laying the apt repository: %s: %w", deb, err)
		}
		index.WriteString(entry + "\n")
		if err := link(deb, filepath.Join(flat, filepath.Base(deb))); err != nil {
			return fmt.Errorf("laying the apt repository: %w", err)
		}
	}
	release := releaseFile(index.Bytes())
	signed, err := clearSign(release, key)
	if err != nil {
		return fmt.Errorf("signing the apt repository: %w", err)
	}
	public, err := armoredPublicKey(key)
	if err != nil {
		return fmt.Errorf("signing the apt repository: %w", err)
	}
	for path, content := range map[string][]byte{
		keyFile:                          public,
		filepath.Join(flat, "Packages"):  index.Bytes(),
		filepath.Join(flat, "Release"):   release,
		filepath.Join(flat, "InRelease"): signed,
	} {
		if err := writeFile(path, content); err != nil {
			return fmt.Errorf("laying the apt repository: %w", err)
		}
	}
	return nil
}

func releaseFile(index []byte) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "Origin: gpuctl lab\nLabel: gpuctl lab\nSuite: stable\nArchitectures: amd64\nDate: %s\n",
		time.Now().UTC().Format(time.RFC1123))
	fmt.Fprintf(&b, "SHA256:\n %x %d Packages\n", sha256.Sum256(index), len(index))
	return b.Bytes()
}

func clearSign(text []byte, key *openpgp.Entity) ([]byte, error) {
	var b bytes.Buffer
	w, err := clearsign.Encode(&b, key.PrivateKey, nil)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(text); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return append(b.Bytes(), '\n'), nil
}

func armoredPublicKey(key *openpgp.Entity) ([]byte, error) {
	var b bytes.Buffer
	w, err := armor.Encode(&b, openpgp.PublicKeyType, nil)
	if err != nil {
		return nil, err
	}
	if err := key.Serialize(w); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return append(b.Bytes(), '\n'), nil
}

// packageEntry is a package's paragraph in the index: its control file and
// where it lies.
func packageEntry(deb string) (string, error) {
	content, err := os.ReadFile(deb)
	if err != nil {
		return "", err
	}
	control, err := controlFile(content)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%s\nFilename: ./%s\nSize: %d\nSHA256: %x\n",
		strings.TrimSpace(control), filepath.Base(deb), len(content), sha256.Sum256(content)), nil
}

// controlFile takes the control file out of a .deb, an ar archive with a
// control.tar.gz (dpkg-deb -Zgzip).
func controlFile(deb []byte) (string, error) {
	member, err := arMember(deb, "control.tar.gz")
	if err != nil {
		return "", err
	}
	unzipped, err := gzip.NewReader(bytes.NewReader(member))
	if err != nil {
		return "", err
	}
	for r := tar.NewReader(unzipped); ; {
		h, err := r.Next()
		if err != nil {
			return "", fmt.Errorf("looking for the control file: %w", err)
		}
		if strings.TrimPrefix(h.Name, "./") == "control" {
			text, err := io.ReadAll(io.LimitReader(r, 1<<20))
			return string(text), err
		}
	}
}
