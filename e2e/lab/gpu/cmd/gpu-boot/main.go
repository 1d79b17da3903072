// Command gpu-boot lays the simulated GPUs of a lab machine at boot. With the
// argument "load" it loads the driver, as modprobe asks it to; with "installed" it
// takes in what a driver package brought; with "faults" it takes in other faults of a living machine; with "mig-mode 0|1" and "mig-cut LAYOUT" it
// does what the driver does for nvidia-smi -mig and for a MIG manager.
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
		case "faults":
			run = boot.Faults
		case "mig-mode":
			run = func() error { return boot.SetMIGMode(os.Args[len(os.Args)-1] == "1") }
		case "mig-cut":
			run = func() error { return boot.CutMIG(os.Args[len(os.Args)-1]) }
		}
	}
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "gpu-boot:", err)
		os.Exit(1)
	}
}
