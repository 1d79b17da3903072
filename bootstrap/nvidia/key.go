package nvidia

import (
	"bytes"
	"crypto/sha1" //nolint:gosec // an OpenPGP version 4 fingerprint is a SHA-1 by definition
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/ProtonMail/go-crypto/openpgp/armor"
	"github.com/ProtonMail/go-crypto/openpgp/packet"

	"github.com/gpuctl/gpuctl/internal/diag"
)

// ErrKey is wrapped by errors about a package repository's key that is not the pinned one.
var ErrKey error = keyError{}

const tagPublicKey = 6

// PinnedKey takes a repository's key file (armored or not) apart, makes sure
// that it holds one key and that its fingerprint is the pinned one, and returns
// that key alone, armored. apt trusts every key in the file it is given: a
// second one behind the right one must not get there.
func PinnedKey(file []byte, fingerprint string) ([]byte, error) {
	want := strings.ToLower(strings.ReplaceAll(fingerprint, " ", ""))
	if b, err := hex.DecodeString(want); err != nil || len(b) != sha1.Size {
		return nil, fmt.Errorf("%w: the pin %q is no fingerprint of 40 hex digits", ErrKey, fingerprint)
	}
	raw, err := binaryKey(file)
	if err != nil {
		return nil, fmt.Errorf("%w: reading it: %w", ErrKey, err)
	}
	var out bytes.Buffer
	w, err := armor.Encode(&out, "PGP PUBLIC KEY BLOCK", nil)
	if err != nil {
		return nil, fmt.Errorf("%w: writing it: %w", ErrKey, err)
	}
	keys := 0
	for r := packet.NewOpaqueReader(raw); ; {
		p, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("%w: reading it: %w", ErrKey, err)
		}
		if p.Tag == tagPublicKey {
			keys++
			if got := fingerprintOf(p.Contents); got != want {
				return nil, fmt.Errorf("%w: its fingerprint is %s, pinned is %s", ErrKey, strings.ToUpper(got), strings.ToUpper(want))
			}
		}
		if err := p.Serialize(w); err != nil {
			return nil, fmt.Errorf("%w: writing it: %w", ErrKey, err)
		}
	}
	if keys != 1 {
		return nil, fmt.Errorf("%w: the file holds %d keys", ErrKey, keys)
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("%w: writing it: %w", ErrKey, err)
	}
	out.WriteByte('\n')
	return out.Bytes(), nil
}

func binaryKey(file []byte) (io.Reader, error) {
	if !bytes.Contains(file, []byte("-----BEGIN PGP")) {
		return bytes.NewReader(file), nil
	}
	block, err := armor.Decode(bytes.NewReader(file))
	if err != nil {
		return nil, err
	}
	return block.Body, nil
}

// fingerprintOf is RFC 9580, section 5.5.4.2, for a version 4 public key packet.
func fingerprintOf(contents []byte) string {
	h := sha1.New() //nolint:gosec // see the import
	length := make([]byte, 2)
	binary.BigEndian.PutUint16(length, uint16(len(contents))) //nolint:gosec // version 4 allows no longer ones
	h.Write([]byte{0x99})
	h.Write(length)
	h.Write(contents)
	return hex.EncodeToString(h.Sum(nil))
}

type keyError struct{}

func (keyError) Error() string { return "the package repository's key is not the pinned one" }

// DiagCode implements diag.Coded.
func (keyError) DiagCode() diag.Code { return CodePackageKey }
