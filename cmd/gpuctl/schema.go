package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/gpuctl/gpuctl/docs/schema"
)

func newSchema(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "schema",
		Short:   "Print the JSON Schema of gpuctl.yaml, for editors",
		Example: "  gpuctl schema > gpuctl.schema.json",
		Args:    wants(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			a.printed = true
			if _, err := fmt.Fprint(a.out, schema.Cluster()); err != nil {
				return fmt.Errorf("printing the schema: %w", err)
			}
			return nil
		},
	}
}
