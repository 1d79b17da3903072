package nvidia

import (
	"context"
	_ "embed"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/gpuctl/gpuctl/bootstrap/host"
	"github.com/gpuctl/gpuctl/bootstrap/plan"
	"github.com/gpuctl/gpuctl/bootstrap/remote"
)

// Files by which apt is let into a package mirror: apt_auth.conf(5), and
// Acquire::https::HOST::CAInfo of apt-transport-https(1).
const (
	PathAptAuth = "/etc/apt/auth.conf.d/gpuctl.conf"
	PathAptCA   = "/etc/apt/gpuctl-ca.pem"
	PathAptConf = "/etc/apt/apt.conf.d/51gpuctl-mirror"
)

//go:embed access.sh
var accessScript string

// AccessID is the action after which apt is let into the package mirror.
func AccessID(machine string) string { return machine + "/apt-access" }

// Paths are the files whose state Plan needs; the probe must ask for them.
func Paths() []string { return []string{PathAptAuth, PathAptCA, PathAptConf, PathNouveau} }

// accessFile is one of the files; an empty text is none.
type accessFile struct{ path, mode, text string }

// accessFiles renders them. apt drops its rights before it opens certificates
// and after it has opened the logins, so only those can be for root alone.
func accessFiles(want Want) []accessFile {
	files := []accessFile{{path: PathAptAuth, mode: "0600"}, {path: PathAptCA, mode: "0644"}, {path: PathAptConf, mode: "0644"}}
	s := want.Packages
	if s.Username != "" {
		// With the protocol apt sends the login there alone.
		files[0].text = fmt.Sprintf("machine %s/ login %s password %s", strings.TrimRight(s.URL, "/"), s.Username, s.Password)
	}
	if s.CA != "" {
		files[1].text = s.CA
		files[2].text = fmt.Sprintf("// Written by gpuctl.\nAcquire::https::%s::CAInfo %q;", hostname(s.URL), PathAptCA)
	}
	return files
}

func hostname(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return ""
	}
	return u.Hostname()
}

// planAccess compares the files with those that are there, and takes away what
// is not wanted any more.
func planAccess(want Want, seen host.Facts, on remote.Runner) []plan.Action {
	if !seen.Files.Has() || seen.Packages.Value.Manager != "apt" {
		return nil
	}
	var reasons, changes []string
	files := accessFiles(want)
	for _, f := range files {
		have, there := seen.Files.Value[f.path]
		switch {
		case f.text == "" && !there:
			continue
		case f.text == "":
			reasons = append(reasons, f.path+" is of no use any more")
			changes = append(changes, f.path+": removed")
			continue
		case !there:
			reasons = append(reasons, f.path+" is absent")
		case have.Hash != host.KeyedHash(want.Key, []byte(f.text+"\n")):
			reasons = append(reasons, f.path+" differs")
		case strings.TrimLeft(have.Mode, "0") != strings.TrimLeft(f.mode, "0"):
			reasons = append(reasons, fmt.Sprintf("%s has mode %s, wanted %s", f.path, have.Mode, f.mode))
		}
		changes = append(changes, f.path+", mode "+f.mode)
	}
	if len(reasons) == 0 {
		return nil
	}
	return []plan.Action{{
		ID: AccessID(want.Machine), Machine: want.Machine, Title: "let apt into the package mirror",
		Reason: strings.Join(reasons, ", "), Changes: changes, Needs: []string{want.Machine + "/host-holds"}, Timeout: time.Minute,
		Apply: func(ctx context.Context, _ plan.Say) error {
			_, err := on.Run(ctx, remote.Cmd{
				Name: "let apt into the mirror", Script: accessScript, Sudo: true, Args: Paths(), Secrets: want.Packages.Secrets(),
				Env: map[string]string{"AUTH": files[0].text, "CA": files[1].text, "CONF": files[2].text},
			})
			if err != nil {
				return fmt.Errorf("letting apt into the package mirror: %w", err)
			}
			return nil
		},
	}}
}
