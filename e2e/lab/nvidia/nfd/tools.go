//go:build tools

// Package nfd pins the Node Feature Discovery daemons that the lab builds.
package nfd

import (
	_ "sigs.k8s.io/node-feature-discovery/cmd/nfd-gc"
	_ "sigs.k8s.io/node-feature-discovery/cmd/nfd-master"
	_ "sigs.k8s.io/node-feature-discovery/cmd/nfd-worker"
)
