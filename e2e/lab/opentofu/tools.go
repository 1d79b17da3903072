//go:build tools

// Package opentofu pins the OpenTofu that the lab builds where a test needs
// one: machines of CI have none.
package opentofu

import _ "github.com/opentofu/opentofu/cmd/tofu"
