//go:build tools

// Package critools pins the crictl that the stand-in ships.
package critools

import _ "sigs.k8s.io/cri-tools/cmd/crictl"
