package k3s

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/gpuctl/gpuctl/bootstrap/host"
	"github.com/gpuctl/gpuctl/bootstrap/remote"
)

// Seen is what is on a machine, as far as planning k3s needs it.
type Seen struct {
	// Unknown is why k3s could not be looked at; nothing is planned then.
	Unknown string
	// Unseen is why what is installed could not be looked at, a part of Unknown: whether
	// there is something to take off does not depend on the rest.
	Unseen string
	// Arch is "amd64" or "arm64".
	Arch string
	// Version and SHA256 are of the installed binary; empty when there is none.
	Version, SHA256 string
	// Units maps "k3s" and "k3s-agent" to their state; absent ones are not in it.
	Units map[string]host.Unit
	// Files are the files of Paths that exist.
	Files map[string]host.File
	// Hash is the keyed hash the probe used.
	Hash func(content []byte) string
	// ConfigKeys are the keys of each k3s configuration file, without values.
	ConfigKeys map[string][]string
	// NodeIP is what the machine's own configuration says now; empty where it is not known.
	NodeIP string
	// Registries is the machine's registries.yaml; only Observe fills it, and only when it is not known to be right.
	Registries []byte
	// Unregistered is why a running agent must start again to be a node; empty where it is one. The caller fills it in: it takes the API to know.
	Unregistered string
}

// Paths are the files whose state Plan and ResetPlan need; the probe must ask for them.
func Paths(w Want) []string {
	paths := []string{RegistriesFile, UserConfig, tokenFile(w), AgentTokenFile, ClusterFile}
	// What an installation that was cut off leaves, or one of another tool's.
	paths = append(paths, stagedPath(w), stagedPath(w)+".part", w.Data()+"/server", w.Data()+"/server/db", w.Data()+"/server/db/etcd", w.Data()+"/agent", w.Data()+"/data")
	for _, f := range Files(w) {
		paths = append(paths, f.Path)
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}

// See takes what Plan needs from the facts of a machine. key is the key of the probe.
func See(f host.Facts, key string) Seen {
	s := Seen{
		Units: f.K3s.Value.Units, Version: f.K3s.Value.Version, SHA256: f.K3s.Value.SHA256,
		Files: f.Files.Value, ConfigKeys: f.K3s.Value.ConfigKeys,
		NodeIP: f.K3s.Value.InForce["node-ip"],
		Hash:   func(content []byte) string { return host.KeyedHash(key, content) },
	}
	switch f.System.Value.Arch {
	case "x86_64", "amd64":
		s.Arch = "amd64"
	case "aarch64", "arm64":
		s.Arch = "arm64"
	}
	switch {
	case f.K3s.Unsure():
		s.Unseen = "k3s: " + f.K3s.Reason()
		s.Unknown = s.Unseen
	case f.Files.Unsure():
		s.Unseen = "files: " + f.Files.Reason()
		s.Unknown = s.Unseen
	case s.Arch == "":
		s.Unknown = fmt.Sprintf("architecture %q", f.System.Value.Arch)
	}
	return s
}

// Observe looks closer where the facts do not tell what is pending: a
// registries.yaml that is not gpuctl's may already say what is wanted. It is
// one command, and none on most machines.
func Observe(ctx context.Context, on remote.Runner, w Want, s Seen) (Seen, error) {
	want, err := w.registries()
	have, there := s.Files[RegistriesFile]
	if err != nil || want == "" || !there || s.Hash == nil || have.Hash == s.Hash([]byte(want)) {
		return s, err
	}
	s.Registries, err = readRegistries(ctx, on)
	return s, err
}

// readRegistries brings back registries.yaml. It may hold passwords: the
// content stays in memory and is never said.
func readRegistries(ctx context.Context, on remote.Runner) ([]byte, error) {
	res, err := on.Run(ctx, remote.Cmd{
		Name: "read registries.yaml", Sudo: true, Timeout: 20 * time.Second,
		Script: "[ ! -e " + RegistriesFile + " ] || cat " + RegistriesFile + "\n",
	})
	return res.Stdout, err
}

// registriesChange returns the text to write, "" when nothing is to be done.
func registriesChange(w Want, existing []byte) (string, error) {
	want, err := w.registries()
	if err != nil || want == "" || string(existing) == want {
		return "", err
	}
	if len(bytes.TrimSpace(existing)) == 0 || bytes.HasPrefix(existing, []byte(header)) {
		return want, nil
	}
	merged, changed, err := MergeRegistries(existing, w.Registries, w.ImageMirror)
	if err != nil || !changed {
		return "", err
	}
	return merged, nil
}

// errNoJoin says that a member has no way to learn the cluster's tokens.
var errNoJoin = errors.New("the server's credentials are not known")
