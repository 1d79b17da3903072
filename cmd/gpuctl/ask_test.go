package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gpuctl/gpuctl/bootstrap/sshconn"
	"github.com/gpuctl/gpuctl/internal/config"
)

func ask(stdin string, ref *config.Secret) (asker, *[]string) {
	var secrets []string
	a := &app{in: strings.NewReader(stdin), err: &bytes.Buffer{}, terminal: terminals{in: stdin != ""},
		readPassword: func(string) (string, error) { return "typed", nil }}
	return asker{a, func(s string) { secrets = append(secrets, s) }, ref, &asked{phrases: map[string]string{}}, ""}, &secrets
}

func TestSudoPasswordComesFromWhereTheFileSays(t *testing.T) {
	file := filepath.Join(t.TempDir(), "pw")
	if err := os.WriteFile(file, []byte("from file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PW", "from env")
	known := sshconn.Info{Host: "gpu-1"}
	for want, ref := range map[string]*config.Secret{"": nil, "from env": {Env: "PW"}, "from file": {File: file}, "typed": {Prompt: true}} {
		a, secrets := ask("-", ref)
		got, err := a.sudoPassword(context.Background(), known)
		if err != nil || got != want {
			t.Errorf("%+v: %q, %v", ref, got, err)
		}
		if want != "" && strings.Join(*secrets, "") != want {
			t.Errorf("registered %q", *secrets)
		}
	}
	for _, ref := range []*config.Secret{{Env: "NO_SUCH"}, {File: "/no/such"}, {Prompt: true}} {
		a, _ := ask("", ref)
		if _, err := a.sudoPassword(context.Background(), known); !is[*usageError](err) {
			t.Errorf("%+v: %v", ref, err)
		}
	}
}

func TestANewMachineGetsThePasswordOnlyWithConsent(t *testing.T) {
	fresh := sshconn.Info{Host: "gpu-1", FirstSeen: true, Fingerprint: "SHA256:abc"}
	ref := &config.Secret{Prompt: true}
	for stdin, want := range map[string]string{"y\n": "typed", "n\n": "", "": ""} {
		a, _ := ask(stdin, ref)
		got, err := a.sudoPassword(context.Background(), fresh)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("answer %q: %q, %v", stdin, got, err)
		}
		if code := exitCode(err); err != nil && code != exitUnreachable {
			t.Errorf("answer %q: exit code %d for %v", stdin, code, err)
		}
	}
	a, _ := ask("", ref)
	a.app.terminal.in, a.app.flags.acceptNewHostKeys = true, true
	if got, err := a.sudoPassword(context.Background(), fresh); got != "typed" || err != nil {
		t.Errorf("with the flag: %q, %v", got, err)
	}
}

func TestPassphraseIsAskedOnce(t *testing.T) {
	a, _ := ask("-", nil)
	times := 0
	a.app.readPassword = func(string) (string, error) {
		times++
		if times > 1 {
			return "", errors.New("asked again")
		}
		return "open", nil
	}
	for range 2 {
		if got, err := a.passphrase(context.Background(), "id"); err != nil || string(got) != "open" {
			t.Errorf("%q, %v", got, err)
		}
	}
}
