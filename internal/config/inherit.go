//go:build !windows

package config

import "syscall"

// keep lets no program that gpuctl starts inherit a descriptor with a secret.
func keep(descriptor int) { syscall.CloseOnExec(descriptor) }
