package main

import "time"

// suite is one command that tests something.
type suite struct {
	name  string
	limit time.Duration
	// dir is where it runs, from the repository's root.
	dir string
	env []string
	// argv is the command; goTest says that it prints go test -json.
	argv   []string
	goTest bool
	// full: only with -full.
	full bool
}

// suites in the order in which they run: what fails soonest and most often first.
func suites() []suite {
	goTest := []string{"go", "test", "-json", "./..."}
	return []suite{
		{name: "unit", limit: 20 * time.Minute, argv: goTest, goTest: true},
		{name: "cross", limit: 15 * time.Minute, argv: []string{"make", "--no-print-directory", "cross"}},
		{name: "lint", limit: 20 * time.Minute, argv: []string{"make", "--no-print-directory", "lint"}},
		{name: "lab-unit", limit: 10 * time.Minute, dir: "e2e", argv: goTest, goTest: true},
		// Compiled as the lab compiles it: Kubernetes once, not twice.
		{name: "standin", limit: 15 * time.Minute, dir: "e2e/lab/standin/k3s", env: []string{"CGO_ENABLED=0", "GOFLAGS=-trimpath"}, argv: goTest, goTest: true},
		{name: "lab", limit: 45 * time.Minute, dir: "e2e", argv: []string{"go", "test", "-json", "-tags", "lab", "-p", "1", "-timeout", "44m", "./..."}, goTest: true},
		{name: "lab-full", limit: 100 * time.Minute, dir: "e2e", argv: []string{"go", "test", "-json", "-tags", "lab,full", "-run", "^TestFull", "-p", "1", "-timeout", "99m", "."}, goTest: true, full: true},
		{name: "race", limit: 30 * time.Minute, argv: []string{"go", "test", "-json", "-race", "./..."}, goTest: true, full: true},
		{name: "fuzz", limit: 30 * time.Minute, argv: []string{"make", "--no-print-directory", "fuzz"}, full: true},
	}
}
