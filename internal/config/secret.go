package config

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

// maxSecret bounds a secret in bytes; certificates are the longest.
const maxSecret = 1 << 20

// Read returns the secret of an environment variable, a file or a descriptor,
// without the newline at its end. A prompt is for the caller to make. The error
// names the place, never the value.
func (s Secret) Read() (string, error) {
	switch {
	case s.Env != "":
		if v := os.Getenv(s.Env); v != "" {
			return v, nil
		}
		return "", fmt.Errorf("the environment variable %s is empty", s.Env)
	case s.Prompt:
		return "", errors.New("prompt needs a terminal; use env, file or descriptor")
	}
	data, err := s.bytes()
	if err != nil {
		return "", fmt.Errorf("reading a secret: %w", err)
	}
	text := strings.TrimRight(string(data), "\r\n")
	if text == "" {
		return "", fmt.Errorf("reading a secret: %s is empty", s)
	}
	return text, nil
}

func (s Secret) bytes() ([]byte, error) {
	if s.Descriptor == 0 {
		return os.ReadFile(s.File)
	}
	f := os.NewFile(uintptr(s.Descriptor), s.String()) //nolint:gosec // checked to be 3 to 1023
	if f == nil {
		return nil, fmt.Errorf("%s is not open", s)
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxSecret))
}

// String names the place of the secret.
func (s Secret) String() string {
	switch {
	case s.Env != "":
		return "the environment variable " + s.Env
	case s.Prompt:
		return "a prompt"
	case s.Descriptor != 0:
		return fmt.Sprintf("descriptor %d", s.Descriptor)
	}
	return s.File
}

// Text is the secret itself in a configuration of Config.Resolved, else empty.
func (s *Secret) Text() string {
	if s == nil {
		return ""
	}
	return s.text
}

// held is a secret outside of maps that are only passed on.
type held struct {
	field  string
	secret **Secret
}

func (s *Spec) secrets() []held {
	out := []held{{"spec.proxy.password", &s.Proxy.Password}}
	for _, src := range s.Sources.all() {
		at := "spec.sources." + src.key
		out = append(out, held{at + ".password", &src.Password}, held{at + ".token", &src.Token})
	}
	return out
}

// readCA reads the certificates of a source and makes sure that they are some.
func (s *Source) readCA() error {
	if s.CAFile == "" || s.ca != "" {
		return nil
	}
	data, err := os.ReadFile(s.CAFile)
	if err != nil {
		return fmt.Errorf("reading certificates: %w", err)
	}
	var all bytes.Buffer
	for rest := data; ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		if _, err := x509.ParseCertificate(block.Bytes); block.Type != "CERTIFICATE" || err != nil {
			return fmt.Errorf("%s holds something that is no certificate: %s", s.CAFile, block.Type)
		}
		all.Write(pem.EncodeToMemory(&pem.Block{Type: block.Type, Bytes: block.Bytes}))
	}
	if all.Len() == 0 {
		return fmt.Errorf("%s holds no certificate in PEM", s.CAFile)
	}
	s.ca = strings.TrimSpace(all.String())
	return nil
}

// untakable are secrets that the programs for which they are cannot be given.
func (s *Spec) untakable() []Problem {
	var out []Problem
	if strings.ContainsAny(s.Sources.Packages.Password.Text(), " \t\r\n") {
		out = append(out, Problem{Field: "spec.sources.packages.password", Message: "holds a space, which apt cannot take"})
	}
	for _, src := range s.Sources.all() {
		if strings.ContainsAny(src.Token.Text(), " \t\r\n\"\\") {
			out = append(out, Problem{Field: "spec.sources." + src.key + ".token", Message: "is no bearer token: it holds a space or a quote"})
		}
	}
	return out
}
