package collect

import (
	"bytes"
	"strings"
	"testing"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/armor"
	"github.com/ProtonMail/go-crypto/openpgp/clearsign"
)

func hash(c string) string { return strings.Repeat(c, 64) }

// packagesList is synthetic, in the form of NVIDIA's repositories.
func packagesList() string {
	entry := func(name, version, file, sum, depends string) string {
		return "Package: " + name + "\nVersion: " + version + "\nFilename: " + file + "\nSize: 10\nSHA256: " + sum + "\nDepends: " + depends + "\n\n"
	}
	return entry("nvidia-container-toolkit", "1.20.0-1", "./t120.deb", hash("a"), "nvidia-container-toolkit-base (= 1.20.0-1), libc6 (>= 2.27)") +
		entry("nvidia-container-toolkit", "1.19.0-1", "./t119.deb", hash("b"), "") +
		entry("nvidia-container-toolkit-base", "1.20.0-1", "./b120.deb", hash("c"), "") +
		entry("nvidia-container-toolkit-base", "1.20.0", "./b1200.deb", hash("1"), "") +
		entry("nvidia-open", "580.95.05-1", "./o95.deb", hash("d"), "nvidia-kernel-open-dkms (= 580.95.05-1) | nvidia-kernel-open, dkms") +
		entry("nvidia-open", "580.105.08-1", "./o105.deb", hash("e"), "nvidia-kernel-open-dkms:any (= 1:580.105.08-1)") +
		entry("nvidia-open", "590.1-1", "./o590.deb", hash("f"), "") +
		entry("nvidia-kernel-open-dkms", "1:580.105.08-1", "./k105.deb", hash("2"), "") +
		entry("nvidia-kernel-open-dkms", "1:590.1-1", "./k590.deb", hash("3"), "")
}

// Kernel headers come along where a mirror has them.
func TestHeaders(t *testing.T) {
	all, err := parsePackages([]byte(packagesList() + "Package: linux-headers-6.1.0-1-amd64\nVersion: 1\nFilename: ./h.deb\nSHA256: " + hash("4") + "\n"))
	if err != nil {
		t.Fatal(err)
	}
	if got := all.headers(); len(got) != 1 || got[0].file != "h.deb" {
		t.Errorf("%+v", got)
	}
}

func TestClosure(t *testing.T) {
	all, err := parsePackages([]byte(packagesList()))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		names  []string
		prefix string
		want   string
	}{
		{[]string{"nvidia-container-toolkit"}, "1.20.0-1", "t120.deb b120.deb"},
		{[]string{"nvidia-open"}, "580", "o105.deb k105.deb"}, // newest of the branch, by number
		{[]string{"nvidia-open"}, "58", ""},
		{[]string{"no-such"}, "", ""},
	} {
		got, err := all.closure(c.names, c.prefix)
		var files []string
		for _, d := range got {
			files = append(files, d.file)
		}
		if strings.Join(files, " ") != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%v %s: %v, %v; want %s", c.names, c.prefix, files, err, c.want)
		}
	}
}

// A list that names files outside of its repository is refused.
func TestHostileLists(t *testing.T) {
	for name, text := range map[string]string{
		"climbs":      "Package: a\nVersion: 1\nFilename: ../../../etc/passwd\nSHA256: " + hash("a") + "\n",
		"absolute":    "Package: a\nVersion: 1\nFilename: /etc/passwd\nSHA256: " + hash("a") + "\n",
		"no file":     "Package: a\nVersion: 1\nSHA256: " + hash("a") + "\n",
		"no checksum": "Package: a\nVersion: 1\nFilename: ./a.deb\nSHA256: ../x\n",
	} {
		if got, err := parsePackages([]byte(text)); err == nil {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func FuzzParsePackages(f *testing.F) {
	f.Add([]byte(packagesList()))
	f.Add([]byte("Package: a\nFilename: ./../a\nSHA256: " + hash("a")))
	f.Fuzz(func(t *testing.T, data []byte) {
		all, err := parsePackages(data)
		if err != nil {
			return
		}
		for name, debs := range all {
			for _, d := range debs {
				if strings.HasPrefix(d.file, "/") || strings.HasPrefix(d.file, "..") {
					t.Errorf("%s lies at %q", name, d.file)
				}
			}
			_, _ = all.closure([]string{name}, "")
		}
	})
}

func FuzzReleaseSums(f *testing.F) {
	f.Add("Origin: x\nSHA256:\n " + hash("a") + " 12 Packages\n")
	f.Fuzz(func(t *testing.T, text string) {
		for name, sum := range sumsOf(text) {
			if name == "" || strings.ContainsAny(name+sum, " \n") {
				t.Errorf("%q: %q", name, sum)
			}
		}
	})
}

// Only a list that the pinned key has signed is believed.
func TestReleaseSignature(t *testing.T) {
	key := func() (*openpgp.Entity, []byte) {
		e, err := openpgp.NewEntity("test", "", "test@example.invalid", nil)
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		w, err := armor.Encode(&b, openpgp.PublicKeyType, nil)
		if err == nil {
			err = e.Serialize(w)
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		return e, b.Bytes()
	}
	signer, public := key()
	_, stranger := key()
	var b bytes.Buffer
	w, err := clearsign.Encode(&b, signer.PrivateKey, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write([]byte("Origin: NVIDIA\nMD5Sum:\n 0 1 Packages\nSHA256:\n " + hash("a") + " 12 Packages\n " + hash("b") + " 3 ./Packages.gz\nMore: x\n")); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	sums, err := releaseSums(b.Bytes(), public)
	if err != nil || len(sums) != 2 || sums["Packages"] != hash("a") || sums["Packages.gz"] != hash("b") {
		t.Errorf("%v, %v", sums, err)
	}
	for name, text := range map[string][]byte{
		"changed": bytes.Replace(b.Bytes(), []byte(hash("a")), []byte(hash("c")), 1),
		"bare":    []byte("SHA256:\n " + hash("a") + " 12 Packages\n"),
		"empty":   nil,
	} {
		if got, err := releaseSums(text, public); err == nil {
			t.Errorf("%s: %v", name, got)
		}
	}
	if got, err := releaseSums(b.Bytes(), stranger); err == nil {
		t.Errorf("another key: %v", got)
	}
}
