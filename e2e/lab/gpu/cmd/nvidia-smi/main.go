// Command nvidia-smi stands in for NVIDIA's tool of that name.
package main

import (
	"os"
	"time"

	"github.com/gpuctl/gpuctl/e2e/lab/gpu/smi"
)

func main() {
	os.Exit(smi.Run(smi.World{
		Root: "/", Stdout: os.Stdout, Stderr: os.Stderr, Now: time.Now,
		Hang: func() { time.Sleep(1000 * time.Hour) },
	}, os.Args[1:]))
}
