// Command nvidia-smi stands in for NVIDIA's tool of that name.
package main

import (
	"fmt"
	"os"
	"os/exec"
	"time"

	"github.com/gpuctl/gpuctl/e2e/lab/gpu/smi"
)

func main() {
	os.Exit(smi.Run(smi.World{
		Root: "/", Stdout: os.Stdout, Stderr: os.Stderr, Now: time.Now,
		Hang: func() { time.Sleep(1000 * time.Hour) },
		SetMIG: func(on bool) error {
			mode := "0"
			if on {
				mode = "1"
			}
			out, err := exec.Command("/usr/lib/lab/gpu-boot", "mig-mode", mode).CombinedOutput()
			if err != nil {
				return fmt.Errorf("%w: %s", err, out)
			}
			return nil
		},
	}, os.Args[1:]))
}
