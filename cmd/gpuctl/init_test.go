package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestInitAsksOnATerminal(t *testing.T) {
	file := filepath.Join(t.TempDir(), "new.yaml")
	answers := "nowhere\nlambda\n\n203.0.113.10, 203.0.113.11\nmany\n8\n"
	got := runWith(t, &fakeEngine{}, answers, "init", "-f", file)
	if got.code != exitOK || !strings.Contains(got.err, `"nowhere" is not known`) || !strings.Contains(got.err, "at least one machine") || !strings.Contains(got.err, `"many" is no number`) {
		t.Fatalf("exit code %d: %s", got.code, got.err)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"provider: lambda", "user: ubuntu", `host: "203.0.113.11"`, "gpus: 8"} {
		if !strings.Contains(string(data), want) {
			t.Errorf("%q is missing in:\n%s", want, data)
		}
	}
	got = runWith(t, &fakeEngine{}, "a\nb\nc\n", "init", "-f", file+"2")
	if _, err := os.Stat(file + "2"); got.code != exitUsage || err == nil {
		t.Errorf("three wrong answers: exit code %d, %v", got.code, err)
	}
}
