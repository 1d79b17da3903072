//go:build tools

// Package operator pins the GPU Operator and its validator that the lab builds.
package operator

import (
	_ "github.com/NVIDIA/gpu-operator/cmd/gpu-operator"
	_ "github.com/NVIDIA/gpu-operator/validator"
)
