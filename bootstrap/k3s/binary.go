package k3s

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strings"
	"time"

	"github.com/gpuctl/gpuctl/bootstrap/plan"
	"github.com/gpuctl/gpuctl/bootstrap/remote"
	"github.com/gpuctl/gpuctl/bootstrap/spread"
	"github.com/gpuctl/gpuctl/internal/source"
)

// DefaultSource is where k3s publishes its releases.
const DefaultSource = "https://github.com/k3s-io/k3s/releases/download"

// download names one binary.
type download struct {
	url, list, name, staged, sum string
	mirror                       source.Source
}

func downloadOf(w Want, arch string) download {
	source := strings.TrimRight(w.Source, "/")
	if source == "" {
		source = DefaultSource
	}
	name := "k3s"
	if arch == "arm64" {
		name = "k3s-arm64"
	}
	base := source + "/" + strings.ReplaceAll(w.Version, "+", "%2B")
	return download{
		url: base + "/" + name, list: base + "/sha256sum-" + arch + ".txt", name: name,
		staged: stagedPath(w), sum: strings.ToLower(w.SHA256), mirror: w.Mirror,
	}
}

// stagedPath is where the verified binary waits for the moment of the change:
// an earlier rename would upgrade k3s at its next crash.
func stagedPath(w Want) string { return BinDir + "/.k3s-" + w.Version }

func downloadAction(w Want, s Seen, a Access, reason string) plan.Action {
	d := downloadOf(w, s.Arch)
	sum := "sha256 " + d.sum
	if d.sum == "" {
		sum = "sha256 from the source's own sha256sum-" + s.Arch + ".txt: the set does not know this version"
	}
	if w.Bundle != "" {
		return bundledAction(w, d, a, reason)
	}
	return plan.Action{
		ID: BinaryID(w.Machine), Machine: w.Machine,
		Title:   "download k3s " + w.Version,
		Reason:  reason,
		Ahead:   true,
		Changes: []string{d.url + " -> " + d.staged, sum},
		Timeout: 20 * time.Minute,
		Apply: func(ctx context.Context, say plan.Say) error {
			return d.apply(ctx, a, w.Proxy, say)
		},
	}
}

// apply lets the machine download; where it cannot, the client does and streams.
func (d download) apply(ctx context.Context, a Access, proxy Proxy, say plan.Say) error {
	say("downloading %s", d.url)
	cmd := d.command("network", nil)
	env := proxy.env()
	maps.Copy(env, cmd.Env)
	cmd.Env = env
	_, err := a.On.Run(ctx, cmd)
	code := remote.ExitCode(err)
	if code != 41 && code != 42 {
		return err
	}
	say("the machine cannot download (%v); sending the binary from here", err)
	fetch := a.Fetch
	if fetch == nil {
		fetch = fetchFrom(d.mirror)
	}
	if d.sum == "" {
		if d.sum, err = d.listed(ctx, fetch); err != nil {
			return err
		}
	}
	if a.Spread != nil {
		// Many machines that cannot download cost one upload where they reach each other.
		return a.Spread(ctx, d.file(fetch), spread.Place{Path: d.staged, Mode: "0755"}, say)
	}
	body, err := fetch(ctx, d.url)
	if err != nil {
		return fmt.Errorf("downloading k3s: %w", err)
	}
	defer body.Close()
	_, err = a.On.Run(ctx, d.command("stdin", body))
	return err
}

// file is the binary as this computer downloads it.
func (d download) file(fetch func(context.Context, string) (io.ReadCloser, error)) spread.File {
	return spread.File{Name: "k3s", SHA256: d.sum, Open: func(ctx context.Context, offset int64) (io.ReadCloser, error) {
		body, err := fetch(ctx, d.url)
		if err != nil {
			return nil, fmt.Errorf("downloading k3s: %w", err)
		}
		if _, err := io.CopyN(io.Discard, body, offset); err != nil {
			return nil, errors.Join(fmt.Errorf("downloading k3s: %w", err), body.Close())
		}
		return body, nil
	}}
}

// bundledAction lays the binary of an offline bundle.
func bundledAction(w Want, d download, a Access, reason string) plan.Action {
	return plan.Action{
		ID: BinaryID(w.Machine), Machine: w.Machine,
		Title:   "send k3s " + w.Version,
		Reason:  reason,
		Ahead:   true,
		Changes: []string{w.Bundle + " -> " + d.staged, "sha256 " + a.Bundled.SHA256},
		Timeout: 2 * time.Hour,
		Apply: func(ctx context.Context, say plan.Say) error {
			return a.Spread(ctx, a.Bundled, spread.Place{Path: d.staged, Mode: "0755"}, say)
		},
	}
}

func (d download) command(from string, stdin io.Reader) remote.Cmd {
	return remote.Cmd{
		Name: "download k3s", Script: downloadScript, Sudo: true, Timeout: 18 * time.Minute,
		Args: []string{d.staged, d.url, d.sum, d.list, d.name, from}, Stdin: stdin,
		Env: d.mirror.Env(), Secrets: d.mirror.Secrets(),
	}
}

// listed reads the checksum from the release's own list.
func (d download) listed(ctx context.Context, fetch func(context.Context, string) (io.ReadCloser, error)) (string, error) {
	body, err := fetch(ctx, d.list)
	if err != nil {
		return "", fmt.Errorf("downloading checksums of k3s: %w", err)
	}
	defer body.Close()
	text, err := io.ReadAll(io.LimitReader(body, 1<<20))
	if err != nil {
		return "", fmt.Errorf("downloading checksums of k3s: %w", err)
	}
	if sum := checksum(string(text), d.name); sum != "" {
		return sum, nil
	}
	return "", fmt.Errorf("%s has no checksum of %s", d.list, d.name)
}

// checksum finds the sum of a file in the output of sha256sum.
func checksum(list, name string) string {
	for _, line := range strings.Split(list, "\n") {
		f := strings.Fields(line)
		if len(f) == 2 && strings.TrimPrefix(f[1], "*") == name && len(f[0]) == 64 {
			return strings.ToLower(f[0])
		}
	}
	return ""
}

func (p Proxy) env() map[string]string {
	env := map[string]string{}
	for name, value := range map[string]string{"http_proxy": p.HTTP, "https_proxy": p.HTTPS, "no_proxy": p.No} {
		if value != "" {
			env[name] = value
		}
	}
	return env
}

// fetchFrom downloads to this computer.
func fetchFrom(mirror source.Source) func(context.Context, string) (io.ReadCloser, error) {
	return func(ctx context.Context, url string) (io.ReadCloser, error) {
		client, err := mirror.Client(0)
		if err != nil {
			return nil, err
		}
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return nil, err
		}
		res, err := client.Do(req)
		if err != nil {
			return nil, err
		}
		if res.StatusCode != http.StatusOK {
			_ = res.Body.Close() // the status is the error
			return nil, fmt.Errorf("%s: %s", url, res.Status)
		}
		return res.Body, nil
	}
}

// Release says where the files of a release of k3s are.
type Release struct {
	// Base is the folder, List the list of checksums in it, Name the binary's name.
	Base, List, Name string
}

// ReleaseOf is a release at a source; an empty one is DefaultSource.
func ReleaseOf(source, version, arch string) Release {
	d := downloadOf(Want{Source: source, Version: version}, arch)
	return Release{Base: strings.TrimSuffix(d.url, "/"+d.name), List: d.list, Name: d.name}
}

// Sum finds the checksum of a file in the release's list, "" where it is not in it.
func (Release) Sum(list []byte, name string) string { return checksum(string(list), name) }
