//go:build unix

package main

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/crypto/ssh"

	"github.com/gpuctl/gpuctl/internal/bench"
)

// machines: simulated ones can be had here.
const machines = true

// farm lets a simulated, settled machine listen and writes gpuctl.yaml for it:
// farm [old new]... replaces words of what it answers to a probe.
func farm(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args)%2 != 0 {
		ts.Fatalf("usage: farm [old new]...")
	}
	change := strings.NewReplacer(args...)
	f, err := bench.StartFarm(bench.FarmOptions{Machines: 1, Change: func(_ int, answer string) string { return change.Replace(answer) }})
	ts.Check(err)
	ts.Defer(func() { _ = f.Close() })
	_, private, err := ed25519.GenerateKey(rand.Reader)
	ts.Check(err)
	block, err := ssh.MarshalPrivateKey(private, "test")
	ts.Check(err)
	key := ts.MkAbs("id")
	ts.Check(os.WriteFile(key, pem.EncodeToMemory(block), 0o600))
	ts.Check(os.WriteFile(ts.MkAbs("gpuctl.yaml"), []byte(bench.Configuration(f.Ports, key)), 0o600))
}

// push puts an image into a registry of this process, which it starts and sets
// $REGISTRY to: push path:tag NAME=VALUE... with the image's environment.
func push(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 {
		ts.Fatalf("usage: push path:tag NAME=VALUE...")
	}
	host := ts.Getenv("REGISTRY")
	if host == "" {
		server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
		ts.Defer(server.Close)
		host = strings.TrimPrefix(server.URL, "http://")
		ts.Setenv("REGISTRY", host)
	}
	img, err := mutate.ConfigFile(empty.Image, &v1.ConfigFile{OS: "linux", Architecture: "amd64", Config: v1.Config{Env: args[1:]}, RootFS: v1.RootFS{Type: "layers"}})
	ts.Check(err)
	ref, err := name.ParseReference(filepath.ToSlash(filepath.Join(host, args[0])))
	ts.Check(err)
	ts.Check(remote.Write(ref, img))
}
