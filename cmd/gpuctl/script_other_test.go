//go:build !unix

package main

import "github.com/rogpeppe/go-internal/testscript"

// machines: the simulated ones need a Unix.
const machines = false

func farm(ts *testscript.TestScript, _ bool, _ []string) { ts.Fatalf("no machines here") }

func push(ts *testscript.TestScript, _ bool, _ []string) { ts.Fatalf("no machines here") }
