package sshconn

import (
	"bytes"
	"errors"
	"os"
	"os/user"
	"path/filepath"
	"strings"
)

// usualSSH is the program whose system-wide file is known to be systemConfig.
const (
	usualSSH     = "/usr/bin/ssh"
	systemConfig = "/etc/ssh/ssh_config"
	// includeDepth is ssh's own limit.
	includeDepth = 16
)

// alikeConfig says whether ssh_config certainly says the same of every host, so
// that one `ssh -G` answers for all. It knows no more of the format than that:
// anything that could tell hosts apart, or that it does not understand, means no.
func alikeConfig(file string) bool {
	if file != "" {
		return alikeFile(file, filepath.Dir(file), "", includeDepth)
	}
	me, err := user.Current()
	if err != nil || me.HomeDir == "" {
		return false
	}
	own := filepath.Join(me.HomeDir, ".ssh")
	return alikeFile(filepath.Join(own, "config"), own, me.HomeDir, includeDepth) &&
		alikeFile(systemConfig, filepath.Dir(systemConfig), me.HomeDir, includeDepth)
}

// alikeFile judges one file; dir is where its relative includes are, home what ~ is.
func alikeFile(file, dir, home string, depth int) bool {
	text, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		return true
	}
	if err != nil || depth == 0 {
		return false
	}
	for line := range bytes.Lines(text) {
		words := strings.Fields(strings.Replace(string(line), "=", " ", 1))
		if len(words) == 0 || strings.HasPrefix(words[0], "#") {
			continue
		}
		// A token (%h) is replaced by what differs from host to host, as a variable might.
		if strings.ContainsAny(string(line), "%$\"'\\") {
			return false
		}
		switch strings.ToLower(words[0]) {
		case "host":
			if len(words) != 2 || words[1] != "*" {
				return false
			}
		case "match", "hostname", "canonicalizehostname", "tag":
			return false
		case "include":
			if !alikeIncludes(words[1:], dir, home, depth) {
				return false
			}
		}
	}
	return true
}

func alikeIncludes(patterns []string, dir, home string, depth int) bool {
	for _, p := range patterns {
		if rest, ok := strings.CutPrefix(p, "~/"); ok && home != "" {
			p = filepath.Join(home, rest)
		}
		if strings.HasPrefix(p, "~") {
			return false
		}
		if !filepath.IsAbs(p) {
			p = filepath.Join(dir, p)
		}
		files, err := filepath.Glob(p)
		if err != nil {
			return false
		}
		for _, f := range files {
			if !alikeFile(f, dir, home, depth-1) {
				return false
			}
		}
	}
	return true
}
