// Command gpu-boot lays the simulated GPUs of a lab machine at boot. With the
// argument "load" it loads the driver, as modprobe asks it to; with "installed" it
// takes in what a driver package brought.
package main

import (
	"fmt"
	"os"

	"github.com/gpuctl/gpuctl/e2e/lab/gpu/boot"
)

func main() {
	run := boot.Run
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case "load":
			run = boot.Load
		case "installed":
			run = boot.Installed
		}
	}
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "gpu-boot:", err)
		os.Exit(1)
	}
}
