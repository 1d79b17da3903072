// Command vectorAdd stands in for NVIDIA's CUDA sample of that name. It adds
// on the CPU, but only if the container was given a GPU, and says which one.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/gpuctl/gpuctl/e2e/lab/gpu/scenario"
	"github.com/gpuctl/gpuctl/e2e/lab/gpu/smi"
)

const elements = 50000

func main() {
	fmt.Printf("[Vector addition of %d elements]\n", elements)
	uuid, err := device("/", os.Getenv("CUDA_VISIBLE_DEVICES"))
	if err != nil {
		fmt.Fprintf(os.Stderr, "Failed to allocate device vector A (error code %v)!\n", err)
		os.Exit(1)
	}
	fmt.Println("Copy input data from the host memory to the CUDA device")
	fmt.Printf("CUDA kernel launch with %d blocks of 256 threads\n", (elements+255)/256)
	if !add() {
		fmt.Fprintln(os.Stderr, "Result verification failed")
		os.Exit(1)
	}
	fmt.Println("Copy output data from the CUDA device to the host memory")
	fmt.Println("Test PASSED")
	fmt.Println("Done")
	fmt.Printf("device %s\n", uuid)
}

func add() bool {
	a, b, c := make([]float32, elements), make([]float32, elements), make([]float32, elements)
	for i := range a {
		a[i], b[i] = float32(i), float32(elements-i)
		c[i] = a[i] + b[i]
	}
	return !slices.ContainsFunc(c, func(v float32) bool { return v != elements })
}

// device is the first GPU that CUDA would choose: of those whose node is in
// the container, the one that CUDA_VISIBLE_DEVICES names first.
func device(root, visible string) (string, error) {
	s, err := smi.Library(root)
	if _, cuda := os.Stat(filepath.Join(root, "usr/lib/x86_64-linux-gnu/libcuda.so.1")); err != nil || cuda != nil {
		return "", fmt.Errorf("CUDA driver version is insufficient for CUDA runtime version")
	}
	minors := smi.Visible(root, s)
	if uuid, cut, err := slice(root, visible, s, minors); cut {
		return uuid, err
	}
	chosen := -1
	first, _, _ := strings.Cut(visible, ",")
	for i, m := range minors {
		if visible == "" || first == s.GPUs[m].UUID || first == strconv.Itoa(i) {
			chosen = m
			break
		}
	}
	switch {
	case chosen < 0:
		return "", fmt.Errorf("no CUDA-capable device is detected")
	case s.Faults.Fabric != "" && s.Faults.Fabric != "Completed":
		return "", fmt.Errorf("system not yet initialized")
	case slices.Contains(s.Faults.ComputeFails, chosen) || slices.Contains(s.Faults.Lost, chosen):
		return "", fmt.Errorf("unknown error")
	}
	return s.GPUs[chosen].UUID, nil
}

// slice is the MIG device that CUDA would choose where a GPU is in MIG mode: one
// program computes on one slice.
func slice(root, visible string, s scenario.Scenario, minors []int) (uuid string, cut bool, err error) {
	first, _, _ := strings.Cut(visible, ",")
	for _, m := range minors {
		if mig := s.GPUs[m].MIG; mig == nil || mig.Current != "Enabled" {
			continue
		}
		cut = true
		for _, part := range smi.Slices(root, s.GPUs[m], m) {
			if visible == "" || first == part.UUID {
				return part.UUID, true, nil
			}
		}
	}
	return "", cut, fmt.Errorf("no CUDA-capable device is detected")
}
