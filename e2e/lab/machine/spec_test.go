package machine

import (
	"archive/tar"
	"errors"
	"io"
	"strings"
	"testing"
)

func TestEnvironmentOfDefaults(t *testing.T) {
	s := Spec{Name: "a"}.withDefaults()
	const want = `LAB_KIND=vm
LAB_SHELL='/bin/bash'
LAB_DNS=10.0.0.1
LAB_SSH_PORT=22
LAB_REACH=all
LAB_OUTSIDE='10.0.0.1 10.1.0.1'
`
	if got := string(s.environment("10.0.0.1", []string{"10.0.0.1", "10.1.0.1"})); got != want {
		t.Errorf("environment\n%s\nwant\n%s", got, want)
	}
}

func TestFilesOfASpec(t *testing.T) {
	s := Spec{
		Name: "a", SSHPort: 2222, SSHD: []string{"AllowTcpForwarding no"}, GPU: []byte("{}"), Unprivileged: true,
		Files: map[string]File{"/usr/lib/lab/gpu-boot": {Content: []byte("#!/bin/sh\n"), Mode: 0o755}},
	}.withDefaults()
	archive, err := pack(s.files([]byte("key"), s.environment("10.0.0.1", nil)))
	if err != nil {
		t.Fatal(err)
	}
	got, modes := map[string]string{}, map[string]int64{}
	for r := tar.NewReader(archive); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		got[h.Name], modes[h.Name] = string(content), h.Mode
	}
	for path, want := range map[string]string{
		"etc/lab/machine.env":               "LAB_KIND=container\n",
		"etc/lab/authorized_keys":           "key",
		"etc/ssh/sshd_config.d/05-lab.conf": "Port 2222\nAllowTcpForwarding no\n",
		"etc/lab/gpu.json":                  "{}",
		"usr/lib/lab/gpu-boot":              "#!/bin/sh\n",
	} {
		if !strings.HasPrefix(got[path], want) || got[path] == "" {
			t.Errorf("%s holds %q, want %q at its start", path, got[path], want)
		}
	}
	if modes["usr/lib/lab/gpu-boot"] != 0o755 || modes["etc/lab/gpu.json"] != 0o644 {
		t.Errorf("modes are %v", modes)
	}
}

func TestBuildContextIsStable(t *testing.T) {
	_, first, err := buildContext()
	if err != nil {
		t.Fatal(err)
	}
	if _, second, err := buildContext(); err != nil || second != first {
		t.Errorf("digest %s, then %s, %v", first, second, err)
	}
}
