package bundle

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func sumOf(data []byte) string {
	s := sha256.Sum256(data)
	return hex.EncodeToString(s[:])
}

func content(kind Kind, name string, data []byte) Content {
	return Content{
		File: File{Kind: kind, Name: name, Version: "v1.36.3+k3s1", Arch: "amd64", SHA256: sumOf(data), Size: int64(len(data)), Source: "https://mirror.example/" + name, Checked: "the set", License: "Apache-2.0"},
		WriteTo: func(w io.Writer) error {
			_, err := w.Write(data)
			return err
		},
	}
}

// packed is a tar archive of one member.
func packed(t *testing.T, h tar.Header, body string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	if h.Typeflag == 0 {
		h.Typeflag = tar.TypeReg
	}
	if h.Typeflag == tar.TypeReg {
		h.Size = int64(len(body))
	}
	if err := w.WriteHeader(&h); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(w, body); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func written(t *testing.T, key ed25519.PrivateKey, contents ...Content) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "b.tar")
	if err := Write(file, Manifest{Set: "26.7", Created: time.Unix(1e9, 0).UTC()}, contents, key, nil); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestRoundTrip(t *testing.T) {
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	other, _, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	binary := bytes.Repeat([]byte("k3s"), 100_000)
	tree := packed(t, tar.Header{Name: "stable/deb/amd64/InRelease", Mode: 0o644}, "signed")
	file := written(t, private, content(K3s, "k3s", binary), content(Packages, "toolkit", tree))
	b, err := Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	var last int64
	if err := b.Verify(t.Context(), func(n int64) { last = n }); err != nil || last != b.Size() {
		t.Errorf("verify: %v, told %d of %d", err, last, b.Size())
	}
	if err := b.CheckSignature(public); err != nil {
		t.Error(err)
	}
	if err := b.CheckSignature(other); !errors.Is(err, ErrSignature) {
		t.Errorf("another key: %v", err)
	}
	f, ok := b.Find(K3s, "k3s", "amd64")
	if _, wrong := b.Find(K3s, "k3s", "arm64"); !ok || wrong {
		t.Errorf("found %v, for another architecture %v", ok, wrong)
	}
	r, err := b.Reader(f)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(r); err != nil || !bytes.Equal(got, binary) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	entries, err := os.ReadDir(filepath.Dir(file))
	if err != nil || len(entries) != 1 {
		t.Errorf("beside the bundle: %v, %v", entries, err)
	}
	if text := b.Licenses(); !strings.Contains(text, "Apache-2.0") || !strings.Contains(text, "https://mirror.example/k3s") {
		t.Errorf("licences:\n%s", text)
	}
}

// One flipped bit anywhere in a blob is found; so is a file cut short.
func TestDamage(t *testing.T) {
	file := written(t, nil, content(K3s, "k3s", bytes.Repeat([]byte("k3s"), 100_000)))
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	data[len(data)/2] ^= 1
	flipped := filepath.Join(t.TempDir(), "flipped.tar")
	if err := os.WriteFile(flipped, data, 0o600); err != nil {
		t.Fatal(err)
	}
	b, err := Open(flipped)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if err := b.Verify(t.Context(), func(int64) {}); !errors.Is(err, ErrBundle) {
		t.Errorf("a flipped bit: %v", err)
	}
	if err := b.CheckSignature(make([]byte, ed25519.PublicKeySize)); !errors.Is(err, ErrSignature) {
		t.Errorf("no signature: %v", err)
	}
	if err := os.WriteFile(flipped, data[:len(data)/2], 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(flipped); !errors.Is(err, ErrBundle) {
		t.Errorf("cut short: %v", err)
	}
}

// Archives that would write elsewhere, or say something else than they hold.
func TestHostileArchives(t *testing.T) {
	blob := []byte("blob")
	good := content(K3s, "k3s", blob).File
	manifest := func(change func(*Manifest)) []byte {
		m := Manifest{APIVersion: apiVersion, Kind: kindName, Set: "x", Files: []File{good}}
		if change != nil {
			change(&m)
		}
		data, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	type entry struct {
		h    tar.Header
		body []byte
	}
	first := entry{tar.Header{Name: manifestName}, manifest(nil)}
	second := entry{tar.Header{Name: blobDir + good.SHA256}, blob}
	named := func(name string) entry { return entry{tar.Header{Name: name}, blob} }
	of := func(change func(*Manifest)) []entry {
		return []entry{{tar.Header{Name: manifestName}, manifest(change)}, second}
	}
	tree := func(h tar.Header) []entry {
		data := packed(t, h, "")
		f := content(Packages, "toolkit", data).File
		return []entry{{tar.Header{Name: manifestName}, manifest(func(m *Manifest) { m.Files = []File{f} })}, {tar.Header{Name: blobDir + f.SHA256}, data}}
	}
	for name, entries := range map[string][]entry{
		"empty":                  {},
		"no manifest first":      {second, first},
		"a name that climbs":     {first, second, named("../../etc/passwd")},
		"an absolute name":       {first, second, named("/etc/passwd")},
		"a link":                 {first, {tar.Header{Name: blobDir + good.SHA256, Typeflag: tar.TypeSymlink, Linkname: "/etc/shadow"}, nil}},
		"a hard link":            {first, {tar.Header{Name: blobDir + good.SHA256, Typeflag: tar.TypeLink, Linkname: manifestName}, nil}},
		"a device":               {first, {tar.Header{Name: blobDir + good.SHA256, Typeflag: tar.TypeChar}, nil}},
		"the same twice":         {first, second, second},
		"two manifests":          {first, first, second},
		"more than it says":      {first, second, named(blobDir + strings.Repeat("0", 64))},
		"less than it says":      {first},
		"another size":           of(func(m *Manifest) { m.Files[0].Size = 99 }),
		"a checksum that climbs": of(func(m *Manifest) { m.Files[0].SHA256 = "../../../" + good.SHA256[:55] }),
		"a name with a slash":    of(func(m *Manifest) { m.Files[0].Name = "../k3s" }),
		"a terminal's escape":    of(func(m *Manifest) { m.Files[0].License = "\x1b[2J" }),
		"a C1 control":           of(func(m *Manifest) { m.Files[0].Source = "\u009b2J" }),
		"an unknown kind":        of(func(m *Manifest) { m.Files[0].Kind = "script" }),
		"packages with a link":   tree(tar.Header{Name: "stable", Typeflag: tar.TypeSymlink, Linkname: "/etc"}),
		"packages that climb":    tree(tar.Header{Name: "stable/../../../etc/cron.d/x"}),
		"absolute packages":      tree(tar.Header{Name: "/etc/cron.d/x"}),
		"packages with setuid":   tree(tar.Header{Name: "stable/su", Mode: 0o4755}),
	} {
		t.Run(name, func(t *testing.T) {
			var b bytes.Buffer
			w := tar.NewWriter(&b)
			for _, e := range entries {
				if e.h.Typeflag == 0 {
					e.h.Typeflag, e.h.Size = tar.TypeReg, int64(len(e.body))
				}
				if err := w.WriteHeader(&e.h); err != nil {
					t.Fatal(err)
				}
				if _, err := w.Write(e.body); err != nil {
					t.Fatal(err)
				}
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			file := filepath.Join(t.TempDir(), "b.tar")
			if err := os.WriteFile(file, b.Bytes(), 0o600); err != nil {
				t.Fatal(err)
			}
			if got, err := Open(file); !errors.Is(err, ErrBundle) {
				t.Errorf("%v, %v", got, err)
			}
		})
	}
}

// A manifest is read strictly.
func TestManifest(t *testing.T) {
	for _, text := range []string{``, `[]`, `{"apiVersion":"gpuctl.dev/v1alpha1","kind":"Bundle","more":1}`, `{"apiVersion":"v9","kind":"Bundle"}`, `{"apiVersion":"gpuctl.dev/v1alpha1","kind":"Bundle"} x`} {
		if _, err := ParseManifest([]byte(text)); !errors.Is(err, ErrBundle) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func FuzzParseManifest(f *testing.F) {
	f.Add([]byte(`{"apiVersion":"gpuctl.dev/v1alpha1","kind":"Bundle","set":"26.7","files":[]}`))
	f.Add([]byte(`{"apiVersion":"gpuctl.dev/v1alpha1","kind":"Bundle","files":[{"kind":"k3s","name":"k3s","arch":"amd64","sha256":"` + strings.Repeat("a", 64) + `","size":3}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := ParseManifest(data)
		if err != nil {
			return
		}
		for _, file := range m.Files {
			if strings.ContainsAny(file.Name+file.Version+file.Suffix+file.SHA256, "/\\\n\x1b") || !checksum(file.SHA256) {
				t.Errorf("%+v", file)
			}
		}
	})
}

func FuzzOpen(f *testing.F) {
	file := filepath.Join(f.TempDir(), "seed.tar")
	if err := Write(file, Manifest{Set: "x"}, []Content{content(K3s, "k3s", []byte("k3s"))}, nil, nil); err != nil {
		f.Fatal(err)
	}
	seed, err := os.ReadFile(file)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(seed)
	f.Add(seed[:1024])
	f.Fuzz(func(t *testing.T, data []byte) {
		file := filepath.Join(t.TempDir(), "b.tar")
		if err := os.WriteFile(file, data, 0o600); err != nil {
			t.Fatal(err)
		}
		b, err := Open(file)
		if err != nil {
			return
		}
		defer b.Close()
		if err := b.Verify(context.Background(), func(int64) {}); err != nil && !errors.Is(err, ErrBundle) {
			t.Error(err)
		}
	})
}
