// Command gpu-boot lays the simulated GPUs of a lab machine at boot.
package main

import (
	"fmt"
	"os"

	"github.com/gpuctl/gpuctl/e2e/lab/gpu/boot"
)

func main() {
	if err := boot.Run(); err != nil {
		fmt.Fprintln(os.Stderr, "gpu-boot:", err)
		os.Exit(1)
	}
}
