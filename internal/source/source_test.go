package source

import (
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"
)

// guarded answers whoever logs in as bob, and says what Authorization others sent.
func guarded(t *testing.T, redirect string) (*httptest.Server, *[]string) {
	t.Helper()
	var seen []string
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen = append(seen, r.Header.Get("Authorization"))
		user, password, _ := r.BasicAuth()
		switch {
		case redirect == "" && (user != "bob" || password != "hush"):
			w.WriteHeader(http.StatusUnauthorized)
		case redirect != "":
			http.Redirect(w, r, redirect, http.StatusFound)
		}
	}))
	t.Cleanup(s.Close)
	return s, &seen
}

func caOf(s *httptest.Server) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}))
}

func TestClientLogsInAtItsOwnHostOnly(t *testing.T) {
	own, _ := guarded(t, "")
	src := Source{URL: own.URL, Username: "bob", Password: "hush", CA: caOf(own)}
	client, err := src.Client(time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := client.Get(own.URL + "/x")
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%v, %v", resp, err)
	}
	_ = resp.Body.Close()

	other, seen := guarded(t, "")
	away, _ := guarded(t, other.URL+"/stolen")
	src.URL = away.URL
	if client, err = src.Client(time.Minute); err != nil {
		t.Fatal(err)
	}
	if resp, err = client.Get(away.URL); err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if !slices.Equal(*seen, []string{""}) {
		t.Errorf("another host got %q", *seen)
	}
}

func TestAnUnknownAuthorityIsRefused(t *testing.T) {
	own, _ := guarded(t, "")
	client, err := Source{URL: own.URL, Username: "bob", Password: "hush"}.Client(time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if resp, err := client.Get(own.URL); err == nil {
		_ = resp.Body.Close()
		t.Error("a certificate that nobody signed was taken")
	}
	if _, err := (Source{CA: "no PEM"}).Client(0); err == nil {
		t.Error("certificates that are none were taken")
	}
}

func TestWhatAMachineIsTold(t *testing.T) {
	if env := (Source{URL: "https://m"}).Env(); env != nil {
		t.Errorf("a plain source: %v", env)
	}
	env := Source{URL: "https://m:1/x", Token: "t0k"}.Env()
	if env[EnvAuthorization] != "Bearer t0k" || env[EnvCA] != "" {
		t.Errorf("%v", env)
	}
	s := Source{URL: "https://m:1/x", Username: "bob", Password: "hush"}
	if got := s.Secrets(); !slices.Equal(got, []string{"hush", "Ym9iOmh1c2g="}) || s.Host() != "m:1" {
		t.Errorf("%v, %s", got, s.Host())
	}
}
