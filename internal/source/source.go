// Package source is what it takes to be let into a mirror: a user or a token,
// and the certificates by which it is known. Machines and this computer fetch
// with the same.
package source

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Variables by which a script on a machine gets what it needs, see Env.
const (
	EnvAuthorization = "GPUCTL_AUTHORIZATION"
	EnvCA            = "GPUCTL_CA"
)

// Source is a mirror. The zero value is the upstream place.
type Source struct {
	// URL is where it is; empty means upstream.
	URL string
	// Username and Password log in, or Token does; all empty means nobody asks.
	Username, Password, Token string
	// CA are certificates (PEM) that sign for this mirror alone; empty means the system's.
	CA string
}

// Plain says that any program can fetch from here without being told more than the URL.
func (s Source) Plain() bool { return s.Authorization() == "" && s.CA == "" }

// Host is host and port as they stand in the URL.
func (s Source) Host() string {
	u, err := url.Parse(s.URL)
	if err != nil {
		return ""
	}
	return u.Host
}

// Authorization is the value of the HTTP header of that name, "" where none is
// needed: RFC 7617 (basic), RFC 6750 (bearer).
func (s Source) Authorization() string {
	switch {
	case s.Token != "":
		return "Bearer " + s.Token
	case s.Username != "":
		return "Basic " + base64.StdEncoding.EncodeToString([]byte(s.Username+":"+s.Password))
	}
	return ""
}

// Secrets are the values that no record may hold.
func (s Source) Secrets() []string {
	var out []string
	for _, v := range []string{s.Password, s.Token} {
		if v != "" {
			out = append(out, v)
		}
	}
	if _, encoded, ok := strings.Cut(s.Authorization(), " "); ok {
		out = append(out, encoded)
	}
	return out
}

// Env are the variables by which a script gets what it needs, nil for a plain
// source. They travel on standard input and stay out of argument lists.
func (s Source) Env() map[string]string {
	if s.Plain() {
		return nil
	}
	return map[string]string{EnvAuthorization: s.Authorization(), EnvCA: s.CA}
}

// Client is an HTTP client that logs in at the source's own host, and nowhere
// else, and knows its certificates. limit bounds a request; 0 means none.
func (s Source) Client(limit time.Duration) (*http.Client, error) {
	base, ok := http.DefaultTransport.(*http.Transport)
	if !ok {
		return nil, errors.New("making an HTTP client: the default transport is replaced")
	}
	base = base.Clone()
	if s.CA != "" {
		pool, err := x509.SystemCertPool()
		if err != nil {
			pool = x509.NewCertPool() // Windows before Go 1.18, and systems without any
		}
		if !pool.AppendCertsFromPEM([]byte(s.CA)) {
			return nil, errors.New("making an HTTP client: the certificates are not PEM")
		}
		base.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	}
	client := &http.Client{Timeout: limit, Transport: base}
	if s.Authorization() == "" {
		return client, nil
	}
	at, err := url.Parse(s.URL)
	if err != nil {
		return nil, fmt.Errorf("making an HTTP client: %w", err)
	}
	client.Transport = door{base, at.Host, s.Authorization()}
	return client, nil
}

// Get fetches what is at a URL to this computer, at most max bytes.
func (s Source) Get(ctx context.Context, at string, max int64) ([]byte, error) {
	client, err := s.Client(2 * time.Minute)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at, nil)
	if err != nil {
		return nil, err
	}
	resp, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s", at, resp.Status)
	}
	data, err := io.ReadAll(io.LimitReader(resp.Body, max+1))
	if err == nil && int64(len(data)) > max {
		err = fmt.Errorf("%s has more than %d bytes", at, max)
	}
	return data, err
}

// door logs in at one host.
type door struct {
	http.RoundTripper
	host, authorization string
}

// RoundTrip implements http.RoundTripper.
func (d door) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Host == d.host && r.URL.Scheme == "https" && r.Header.Get("Authorization") == "" {
		r = r.Clone(r.Context())
		r.Header.Set("Authorization", d.authorization)
	}
	return d.RoundTripper.RoundTrip(r)
}
