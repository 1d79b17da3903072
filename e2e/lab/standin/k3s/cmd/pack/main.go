// Command pack makes the file k3s: pack LAUNCHER DIRECTORY OUT.
package main

import (
	"fmt"
	"os"

	"github.com/gpuctl/gpuctl/e2e/lab/standin/k3s/archive"
)

func main() {
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "usage: pack LAUNCHER DIRECTORY OUT")
		os.Exit(2)
	}
	if err := pack(os.Args[1], os.Args[2], os.Args[3]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func pack(launcher, dir, path string) error {
	in, err := os.Open(launcher)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o755)
	if err != nil {
		return err
	}
	if err := archive.Append(out, in, dir); err != nil {
		out.Close()
		return err
	}
	return out.Close()
}
