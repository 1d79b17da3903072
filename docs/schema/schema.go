// Package schema holds the JSON Schema of gpuctl.yaml, generated from the types
// of internal/config. The test of that package fails when it is out of date.
package schema

import _ "embed"

//go:embed gpuctl.schema.json
var cluster string

// Cluster is the schema of kind Cluster, gpuctl.dev/v1alpha1.
func Cluster() string { return cluster }
