package collect

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/clearsign"
)

// deb is one package of a list.
type deb struct {
	name, version, file, sum string
	size                     int64
	depends                  []string // alternatives as they stand: "a (= 1) | b"
}

// catalogue are the packages of a repository by name, in the order of its list.
type catalogue map[string][]deb

// releaseSums are the checksums of a clear-signed InRelease by file, once its
// signature is found to be by the key.
func releaseSums(signed, key []byte) (map[string]string, error) {
	ring, err := openpgp.ReadArmoredKeyRing(bytes.NewReader(key))
	if err != nil {
		return nil, err
	}
	block, _ := clearsign.Decode(signed)
	if block == nil {
		return nil, errors.New("it is not signed")
	}
	if _, err := block.VerifySignature(ring, nil); err != nil {
		return nil, fmt.Errorf("its signature: %w", err)
	}
	return sumsOf(string(block.Plaintext)), nil
}

// sumsOf reads the section SHA256 of a Release file (Debian's repository format).
func sumsOf(release string) map[string]string {
	sums, in := map[string]string{}, false
	for _, line := range strings.Split(release, "\n") {
		line = strings.TrimRight(line, "\r")
		if !strings.HasPrefix(line, " ") {
			in = line == "SHA256:"
			continue
		}
		f := strings.Fields(line)
		if in && len(f) == 3 {
			sums[strings.TrimPrefix(f[2], "./")] = strings.ToLower(f[0])
		}
	}
	return sums
}

// parsePackages reads a list of packages. Names that would lead out of the
// repository are refused.
func parsePackages(list []byte) (catalogue, error) {
	all := catalogue{}
	var d deb
	flush := func() error {
		defer func() { d = deb{} }()
		if d.name == "" {
			return nil
		}
		clean := path.Clean(d.file)
		if d.file == "" || path.IsAbs(d.file) || clean == ".." || strings.HasPrefix(clean, "../") || strings.ContainsAny(d.file, "\\ \t") {
			return fmt.Errorf("package %s lies at %q", d.name, d.file)
		}
		if b, err := hex.DecodeString(d.sum); err != nil || len(b) != sha256.Size {
			return fmt.Errorf("package %s has no SHA-256", d.name)
		}
		d.file = clean
		all[d.name] = append(all[d.name], d)
		return nil
	}
	lines := bufio.NewScanner(bytes.NewReader(list))
	lines.Buffer(nil, 4<<20)
	for lines.Scan() {
		line := lines.Text()
		if strings.TrimSpace(line) == "" {
			if err := flush(); err != nil {
				return nil, err
			}
			continue
		}
		field, value, _ := strings.Cut(line, ":")
		value = strings.TrimSpace(value)
		switch field {
		case "Package":
			d.name = value
		case "Version":
			d.version = value
		case "Filename":
			d.file = value
		case "SHA256":
			d.sum = strings.ToLower(value)
		case "Size":
			d.size, _ = strconv.ParseInt(value, 10, 64)
		case "Depends", "Pre-Depends":
			for _, dep := range strings.Split(value, ",") {
				d.depends = append(d.depends, strings.TrimSpace(dep))
			}
		}
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	return all, flush()
}

// newest is the newest package of a name whose version begins with prefix; ""
// takes any, nil is none. The list's order breaks ties.
func (c catalogue) newest(name, prefix string) *deb {
	var best *deb
	for i, d := range c[name] {
		if !begins(d.version, prefix) {
			continue
		}
		if best == nil || versionLess(best.version, d.version) {
			best = &c[name][i]
		}
	}
	return best
}

// begins holds a version against "1.20.0-1" or a branch "580"; an epoch counts for nothing.
func begins(version, prefix string) bool {
	if _, v, ok := strings.Cut(version, ":"); ok {
		version = v
	}
	return prefix == "" || version == prefix || strings.HasPrefix(version, prefix+".") || strings.HasPrefix(version, prefix+"-")
}

// closure are packages with what they depend on inside the repository: what a
// machine's own system brings is not in it.
func (c catalogue) closure(names []string, prefix string) ([]deb, error) {
	var out []deb
	seen := map[string]bool{}
	var add func(name, prefix string, must bool) error
	add = func(name, prefix string, must bool) error {
		d := c.newest(name, prefix)
		if d == nil && !must {
			d = c.newest(name, "")
		}
		if d == nil {
			if must {
				return fmt.Errorf("%w %s %s", errNothing, name, prefix)
			}
			return nil
		}
		if seen[d.file] {
			return nil
		}
		seen[d.file] = true
		out = append(out, *d)
		for _, dep := range d.depends {
			for _, alternative := range strings.Split(dep, "|") {
				wanted, exact := dependency(alternative)
				if exact == "" {
					exact = prefix
				}
				if err := add(wanted, exact, false); err != nil {
					return err
				}
			}
		}
		return nil
	}
	for _, n := range names {
		if err := add(n, prefix, true); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// headers are kernel headers that a mirror has beside the drivers; NVIDIA's own
// repositories have none.
func (c catalogue) headers() []deb {
	var out []deb
	for _, name := range slices.Sorted(maps.Keys(c)) {
		if strings.HasPrefix(name, "linux-headers-") {
			out = append(out, *c.newest(name, ""))
		}
	}
	return out
}

// dependency takes "name:any (= 1.2-1)" apart; the version is empty unless it is exact.
func dependency(text string) (name, exact string) {
	name, rest, _ := strings.Cut(strings.TrimSpace(text), " ")
	name, _, _ = strings.Cut(name, ":")
	rest = strings.Trim(strings.TrimSpace(rest), "()")
	if v, ok := strings.CutPrefix(rest, "="); ok {
		exact = strings.TrimSpace(v)
		if _, bare, ok := strings.Cut(exact, ":"); ok {
			exact = bare
		}
	}
	return name, exact
}

// versionLess orders versions by their numbers, which is enough inside one repository.
func versionLess(a, b string) bool {
	x, y := numbers(a), numbers(b)
	for i := range min(len(x), len(y)) {
		if x[i] != y[i] {
			return x[i] < y[i]
		}
	}
	return len(x) < len(y)
}

func numbers(v string) []int {
	if _, bare, ok := strings.Cut(v, ":"); ok {
		v = bare
	}
	var out []int
	for _, part := range strings.FieldsFunc(v, func(r rune) bool { return r < '0' || r > '9' }) {
		n, err := strconv.Atoi(part)
		if err != nil {
			n = 0
		}
		out = append(out, n)
	}
	return out
}

func sumOf(data []byte) string {
	s := sha256.Sum256(data)
	return hex.EncodeToString(s[:])
}

func unpacked(name string, data []byte) ([]byte, error) {
	if !strings.HasSuffix(name, ".gz") {
		return data, nil
	}
	z, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	out, err := io.ReadAll(io.LimitReader(z, 512<<20+1))
	if err == nil && len(out) > 512<<20 {
		err = errors.New("it unpacks to more than 512 MiB")
	}
	return out, err
}
