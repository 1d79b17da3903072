package main

import (
	"fmt"
	"io"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// versionInfo is what the Go toolchain stamped into the binary.
type versionInfo struct {
	Version  string `json:"version"`
	Commit   string `json:"commit,omitempty"`
	Date     string `json:"date,omitempty"`
	Modified bool   `json:"modified,omitempty"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func newVersion(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version of gpuctl",
		Example: "  gpuctl version -o json",
		Args:    wants(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			v := readVersion()
			return a.show(v, func(w io.Writer) error {
				_, err := fmt.Fprintf(w, "gpuctl %s (%s, %s, %s)\n", v.Version, v.Commit, v.Go, v.Platform)
				return err
			})
		},
	}
}

func readVersion() versionInfo {
	v := versionInfo{Version: "unknown", Commit: "unknown", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	if info.Main.Version != "" {
		v.Version = info.Main.Version
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			v.Commit = s.Value[:min(12, len(s.Value))]
		case "vcs.time":
			v.Date = s.Value
		case "vcs.modified":
			v.Modified = s.Value == "true"
		}
	}
	return v
}
