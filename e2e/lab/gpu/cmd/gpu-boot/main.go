// Command gpu-boot lays the simulated GPUs of a lab machine at boot. With the
// argument "load" it loads the driver, as modprobe asks it to.
package main

import (
	"fmt"
	"os"

	"github.com/gpuctl/gpuctl/e2e/lab/gpu/boot"
)

func main() {
	run := boot.Run
	if len(os.Args) > 1 && os.Args[1] == "load" {
		run = boot.Load
	}
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "gpu-boot:", err)
		os.Exit(1)
	}
}
