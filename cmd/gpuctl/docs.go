package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

func newDocs(a *app) *cobra.Command {
	var man, markdown string
	cmd := &cobra.Command{
		Use:   "docs",
		Short: "Write the reference of all commands as man pages or Markdown",
		Long: `docs writes a page for each command into a directory, which is made where it is
not there: man pages for a package to install, Markdown as it stands in docs/cli.
Both come from the same text as --help.`,
		Example: "  gpuctl docs --man /usr/local/share/man/man1\n  gpuctl docs --markdown docs/cli",
		Args:    wants(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if man == "" && markdown == "" {
				return usagef("docs needs --man, --markdown or both")
			}
			return a.runDocs(cmd.Root(), man, markdown)
		},
	}
	cmd.Flags().StringVar(&man, "man", "", "write man pages (section 1) into this `directory`")
	cmd.Flags().StringVar(&markdown, "markdown", "", "write Markdown into this `directory`")
	return cmd
}

// docsView is what docs wrote, as JSON.
type docsView struct {
	Man      int `json:"man"`
	Markdown int `json:"markdown"`
}

func (a *app) runDocs(root *cobra.Command, man, markdown string) error {
	quiet(root)
	var v docsView
	if man != "" {
		date := time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC) // a fixed one: a page changes only when its command does
		header := &doc.GenManHeader{Title: "GPUCTL", Section: "1", Source: "gpuctl", Manual: "gpuctl", Date: &date}
		if err := intoDir(man, func() error { return doc.GenManTree(root, header, man) }); err != nil {
			return err
		}
		v.Man = pages(root)
	}
	if markdown != "" {
		same := func(name string) string { return name }
		if err := intoDir(markdown, func() error { return doc.GenMarkdownTreeCustom(root, markdown, generated, same) }); err != nil {
			return err
		}
		v.Markdown = pages(root)
	}
	return a.show(v, func(w io.Writer) error {
		_, err := fmt.Fprintf(w, "%d man pages, %d pages of Markdown\n", v.Man, v.Markdown)
		return err
	})
}

// intoDir makes a directory before it is written to.
func intoDir(dir string, write func() error) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("writing the reference: %w", err)
	}
	if err := write(); err != nil {
		return fmt.Errorf("writing the reference into %s: %w", dir, err)
	}
	return nil
}

// generated is what a Markdown page begins with.
func generated(path string) string {
	return "<!-- Written by gpuctl docs from the text of " + strings.ReplaceAll(strings.TrimSuffix(filepath.Base(path), ".md"), "_", " ") + " --help: make docs. -->\n\n"
}

// quiet leaves out the footer with the day of writing: pages change only with their commands.
func quiet(c *cobra.Command) {
	c.DisableAutoGenTag = true
	for _, sub := range c.Commands() {
		quiet(sub)
	}
}

// pages counts what is documented: the library leaves out help and what is hidden.
func pages(c *cobra.Command) int {
	n := 1
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() && !sub.IsAdditionalHelpTopicCommand() {
			n += pages(sub)
		}
	}
	return n
}
