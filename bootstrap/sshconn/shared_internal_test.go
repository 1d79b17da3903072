package sshconn

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

func TestAlikeConfig(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	write("plain/a.conf", "Port 2222\n")
	write("special/a.conf", "Host gpu-1\n  User ops\n")
	for text, want := range map[string]bool{
		"": true,
		"# Host x\n\nHost *\n\tSendEnv LANG LC_*\n\tHashKnownHosts yes\n": true,
		"Include plain/*.conf\nHost=*\nUser ops\n":                        true,
		"Include absent/*.conf\n":                                         true,
		"Include special/*.conf\n":                                        false,
		"include ~other/config\n":                                         false,
		"Host gpu-*\n  User ops\n":                                        false,
		"Host * !gpu-1\n  User ops\n":                                     false,
		"HOST \"*\"\n":                                                    false,
		"Match all\n":                                                     false,
		"Match exec true\n":                                               false,
		"HostName 10.0.0.1\n":                                             false,
		"CanonicalizeHostname yes\n":                                      false,
		"UserKnownHostsFile /keys/%h\n":                                   false,
		"IdentityFile ${KEYS}/id\n":                                       false,
	} {
		if got := alikeConfig(write("config", text)); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
	if !alikeConfig(filepath.Join(dir, "absent")) {
		t.Error("no file at all: hosts differ")
	}
	if alikeConfig(write("loop", "Include loop\n")) {
		t.Error("a file that includes itself: hosts are alike")
	}
}

// One answer serves all hosts where ssh_config tells them not apart, and only there.
func TestAskOnce(t *testing.T) {
	alike, apart := filepath.Join(t.TempDir(), "alike"), filepath.Join(t.TempDir(), "apart")
	if err := os.WriteFile(alike, []byte("Host *\nUser ops\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(apart, []byte("Host b\nUser ops\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		program, file string
		asked         int
	}{{usualSSH, alike, 2}, {usualSSH, apart, 4}, {"/opt/ssh", alike, 4}} {
		s, asked := newShared(), 0
		for _, q := range []Target{{Host: "a", Port: 1}, {Host: "B", Port: 2}, {Host: "a"}, {Host: "b"}} {
			port := strconv.Itoa(q.Port)
			if q.Port == 0 {
				port = "22"
			}
			raw, err := s.ask(t.Context(), c.program, c.file, q, func() (rawConfig, error) {
				asked++
				return rawConfig{"hostname": {strings.ToLower(q.Host)}, "port": {port}}, nil
			})
			if err != nil || raw.first("port") != port || raw.first("hostname") != strings.ToLower(q.Host) {
				t.Errorf("%+v: %v %v", q, raw, err)
			}
		}
		if asked != c.asked {
			t.Errorf("%s %s: asked %d times", c.program, filepath.Base(c.file), asked)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s := newShared()
	s.asking = make(chan struct{}) // all places are taken
	if _, err := s.ask(ctx, usualSSH, alike, Target{Host: "a"}, nil); err == nil {
		t.Error("asked after the end")
	}
}

// known_hosts files are read again when they change, and only then.
func TestKnownHostsAreReadOnce(t *testing.T) {
	file := filepath.Join(t.TempDir(), "known_hosts")
	text, err := os.ReadFile("testdata/known_hosts_hashed")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	s, warn := newShared(), func(file string, err error) { t.Error(file, err) }
	first := s.knownHosts([]string{file}, warn)
	if first == nil || s.knownHosts([]string{file}, warn) != first {
		t.Error("an unchanged file was read twice")
	}
	if err := os.Chtimes(file, time.Time{}, time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if s.knownHosts([]string{file}, warn) == first {
		t.Error("a changed file was not read again")
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if s.knownHosts([]string{file}, warn) != nil {
		t.Error("a removed file still counts")
	}
}
