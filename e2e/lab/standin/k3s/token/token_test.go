package token

import (
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	hash := strings.Repeat("ab", 32)
	for _, c := range []struct {
		in   string
		want Token
		err  string
	}{
		{"secret", Token{Secret: "secret"}, ""},
		{" secret\n", Token{Secret: "secret"}, ""},
		{"mytoken:with:colon", Token{Secret: "mytoken:with:colon"}, ""},
		{"K10" + hash + "::server:0123", Token{Hash: hash, User: "server", Secret: "0123"}, ""},
		{"K10" + hash + "::node:a:b", Token{Hash: hash, User: "node", Secret: "a:b"}, ""},
		{"abcdef.0123456789abcdef", Token{Secret: "abcdef.0123456789abcdef", Bootstrap: true}, ""},
		{"K10" + hash + "::abcdef.0123456789abcdef", Token{Hash: hash, Secret: "abcdef.0123456789abcdef", Bootstrap: true}, ""},
		{"", Token{}, "token must not be empty"},
		{"K10abc::server:x", Token{}, "invalid token CA hash length"},
		{"K10" + hash, Token{}, "invalid token format"},
		{"K10" + hash + "::server", Token{}, "invalid token format"},
	} {
		got, err := Parse(c.in)
		if got != c.want || (err == nil) != (c.err == "") || err != nil && err.Error() != c.err {
			t.Errorf("Parse(%q) = %+v, %v; want %+v, %q", c.in, got, err, c.want, c.err)
		}
	}
}

func TestFormatIsReadBack(t *testing.T) {
	ca := []byte("a certificate")
	tok, err := Parse(Format(ca, "server", NewSecret()))
	if err != nil {
		t.Fatal(err)
	}
	if err := tok.CheckCA(ca); err != nil {
		t.Error(err)
	}
	err = tok.CheckCA([]byte("another"))
	if err == nil || !strings.HasPrefix(err.Error(), "token CA hash does not match the Cluster CA certificate hash: ") {
		t.Errorf("CheckCA of another CA: %v", err)
	}
}

func TestNewBootstrapHasTheShape(t *testing.T) {
	if b := NewBootstrap(); !IsBootstrap(b) {
		t.Errorf("%q is no bootstrap token", b)
	}
}

func FuzzParse(f *testing.F) {
	f.Add("K10" + strings.Repeat("0", 64) + "::server:x")
	f.Add("abcdef.0123456789abcdef")
	f.Fuzz(func(t *testing.T, s string) {
		if tok, err := Parse(s); err == nil && tok.Secret == "" {
			t.Errorf("Parse(%q) gave no secret and no error", s)
		}
	})
}
