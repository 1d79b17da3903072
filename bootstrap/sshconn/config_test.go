package sshconn

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// recorded is `ssh -G` of OpenSSH 9.2 for a host of a testdata file.
func recorded(t *testing.T, tgt Target) *settings {
	t.Helper()
	out, err := os.ReadFile(filepath.Join("testdata", "ssh_G_"+tgt.Host))
	if err != nil {
		t.Fatal(err)
	}
	s, err := newSettings(tgt, parseSSHG(out), &Options{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// readers are the ways to read an ssh_config file for a host: the recorded
// output of ssh, and the library that stands in where there is no ssh.
func readers() map[string]func(*testing.T, Target, string) *settings {
	return map[string]func(*testing.T, Target, string) *settings{
		"ssh -G": func(t *testing.T, tgt Target, _ string) *settings { return recorded(t, tgt) },
		"library": func(t *testing.T, tgt Target, file string) *settings {
			t.Setenv("PATH", "")
			s, err := resolve(t.Context(), tgt, &Options{ConfigFile: filepath.Join("testdata", file)})
			if err != nil {
				t.Fatal(err)
			}
			return s
		},
	}
}

// alexellis/k3sup#400: all targets jump through an alias with rules of its own.
func TestProxyJumpThroughAlias(t *testing.T) {
	t.Setenv("HOME", "/home/sam")
	for name, read := range readers() {
		t.Run(name, func(t *testing.T) {
			s := read(t, Target{Host: "n1.gpu.example.net"}, "proxyjump_alias")
			if s.hostName != "n1.gpu.example.net" || s.port != 22 || s.user != "clouduser" {
				t.Errorf("target is %s@%s:%d", s.user, s.hostName, s.port)
			}
			if !reflect.DeepEqual(s.jump, []Target{{Host: "edge-hop"}}) {
				t.Errorf("jump %v", s.jump)
			}
			if !reflect.DeepEqual(s.identities, []identity{{"/home/sam/.ssh/id_card", true}}) {
				t.Errorf("identities %v", s.identities)
			}
			if reflect.DeepEqual(s.hostKeyAlgorithms, []string{"ssh-rsa"}) {
				t.Error("the hop's host key algorithms leak to the target")
			}
			hop := read(t, hopTarget(s.jump), "proxyjump_alias")
			if hop.hostName != "hop1.example.org" || hop.port != 2022 || hop.user != "jumper" {
				t.Errorf("hop is %s@%s:%d", hop.user, hop.hostName, hop.port)
			}
			if !reflect.DeepEqual(hop.hostKeyAlgorithms, []string{"ssh-rsa"}) {
				t.Errorf("hop algorithms %v", hop.hostKeyAlgorithms)
			}
		})
	}
}

// jeanp413/open-remote-ssh#227: tokens, variables, quotes, comments.
func TestIdentityTokens(t *testing.T) {
	t.Setenv("HOME", "/home/sam")
	t.Setenv("GPU_KEYS", "/srv/keys")
	for name, read := range readers() {
		t.Run(name, func(t *testing.T) {
			s := read(t, Target{Host: "gpu-7"}, "identity_tokens")
			if s.hostName != "gpu-7.pool.example.net" || s.port != 2207 || s.user != "trainer" {
				t.Errorf("target is %s@%s:%d", s.user, s.hostName, s.port)
			}
			want := []identity{
				{"/home/sam/.ssh/pool_trainer_gpu-7.pool.example.net", true},
				{"/home/sam/.ssh/keys/with space/id_ed25519", true},
				{"/srv/keys/shared#1", true},
			}
			if name == "library" {
				want[2].path = "/srv/keys/shared" // it takes the # for a comment
			}
			if !reflect.DeepEqual(s.identities, want) {
				t.Errorf("identities %v", s.identities)
			}
			if !reflect.DeepEqual(s.certificates, []string{"/home/sam/.ssh/gpu-7-cert.pub"}) {
				t.Errorf("certificates %v", s.certificates)
			}
		})
	}
}

// paramiko/paramiko#2632: a criterion that cannot be evaluated is not true.
// Old ssh and the library stop and name it, new ssh evaluates it.
func TestMatchCriterionUnknown(t *testing.T) {
	for _, path := range []string{os.Getenv("PATH"), ""} {
		t.Setenv("PATH", path)
		s, err := resolve(t.Context(), Target{Host: "gpu-d"}, &Options{ConfigFile: "testdata/match_localnetwork"})
		switch {
		case err != nil && !strings.Contains(strings.ToLower(err.Error()), "localnetwork"):
			t.Errorf("the error does not name the criterion: %v", err)
		case err == nil && (len(s.jump) > 0 || s.hostName != "203.0.113.50" || s.user != "ubuntu"):
			t.Errorf("got %+v", s)
		}
	}
}

// alebeck/boring#20: Fedora's drop-in with "Match final all". ssh reads it;
// without ssh the system's file is not read.
func TestMatchFinalInSystemConfig(t *testing.T) {
	text, err := os.ReadFile("testdata/match_final")
	if err != nil {
		t.Fatal(err)
	}
	dropIns, err := filepath.Abs("testdata/ssh_config.d")
	if err != nil {
		t.Fatal(err)
	}
	include := strings.NewReplacer("Include ssh_config.d", "Include "+dropIns)
	for _, c := range []struct{ path, text string }{
		{os.Getenv("PATH"), include.Replace(string(text))},
		{"", strings.SplitN(string(text), "\n", 2)[1]},
	} {
		file := filepath.Join(t.TempDir(), "config")
		if err := os.WriteFile(file, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		t.Setenv("PATH", c.path)
		t.Setenv("HOME", "/home/sam")
		s, err := resolve(t.Context(), Target{Host: "gpu-a"}, &Options{ConfigFile: file})
		if err != nil {
			// The same file, for an ssh that is not there: the library stops at the drop-in and says so.
			if !strings.Contains(err.Error(), "Match") {
				t.Error(err)
			}
			continue
		}
		if s.hostName != "203.0.113.21" || s.user != "ubuntu" || !slices.Contains(s.identities, identity{"/home/sam/.ssh/lab_ed25519", true}) {
			t.Errorf("got %+v", s)
		}
	}
}

func TestTargetWinsOverConfig(t *testing.T) {
	raw := parseSSHG([]byte("user late\nhostname real.example\nport 2222\nidentityfile ~/.ssh/other\nproxyjump hop\nconnecttimeout 7\nidentitiesonly yes\n"))
	tgt := Target{Host: "alias", User: "ops", Port: 22, IdentityFile: "/k/mine", Jump: "a,b@[2001:db8::1]:24"}
	s, err := newSettings(tgt, raw, &Options{})
	if err != nil {
		t.Fatal(err)
	}
	if s.user != "ops" || s.port != 22 || s.hostName != "real.example" || !s.identitiesOnly || s.connectTimeout.Seconds() != 7 {
		t.Errorf("got %+v", s)
	}
	if len(s.identities) != 2 || s.identities[0] != (identity{"/k/mine", true}) {
		t.Errorf("identities %v", s.identities)
	}
	want := []Target{{Host: "a"}, {User: "b", Host: "2001:db8::1", Port: 24}}
	if !reflect.DeepEqual(s.jump, want) {
		t.Errorf("jump %v", s.jump)
	}
	tgt.Jump = "none"
	if s, err = newSettings(tgt, raw, &Options{}); err != nil || len(s.jump) != 0 || s.proxyCommand != "" {
		t.Errorf("none: %v %v", s.jump, err)
	}
}

func TestDefaultIdentitiesAreNotNamed(t *testing.T) {
	s, err := newSettings(Target{Host: "h"}, parseSSHG([]byte("identityfile ~/.ssh/id_rsa\nidentityfile ~/.ssh/id_ed25519\n")), &Options{})
	if err != nil || len(s.identities) != 2 || s.identities[0].named || s.identities[1].named {
		t.Errorf("got %v, %v", s.identities, err)
	}
}

func TestHostsAndUsersThatGoNowhere(t *testing.T) {
	for _, tgt := range []Target{
		{Host: ""}, {Host: "-oProxyCommand=x"}, {Host: "a b"}, {Host: "a;b"}, {Host: "$(id)"}, {Host: "a\nb"}, {Host: "fe80::1%$(id)"},
		{Host: "h", User: "-x"}, {Host: "h", User: "a b"}, {Host: "h", User: "`id`"}, {Host: "h", Port: 70000},
		{Host: "h", Jump: "-x"}, {Host: "h", Jump: "a,,b"}, {Host: "h", Jump: "a:0"}, {Host: "h", Jump: "[::1"},
	} {
		if err := tgt.check(); err == nil {
			t.Errorf("%+v was taken", tgt)
		}
	}
	for _, tgt := range []Target{
		{Host: "203.0.113.10"}, {Host: "2001:db8::1"}, {Host: "fe80::1%eth0"}, {Host: "gpu_1.example"},
		{Host: "h", User: "svc@corp.example"}, {Host: "h", User: "machine$"}, {Host: "h", Jump: "ssh://a@b:22"},
	} {
		if err := tgt.check(); err != nil {
			t.Errorf("%+v: %v", tgt, err)
		}
	}
}

func TestChildEnv(t *testing.T) {
	env := []string{"PATH=/bin", "SUDO_PW=x", "MY_TOKEN=x", "GPUCTL_X=x", "TF_VAR_a=x", "AWS_SECRET_ACCESS_KEY=kept", "SSH_AUTH_SOCK=/s"}
	got := childEnv(env, []string{"SUDO_PW"})
	want := []string{"PATH=/bin", "AWS_SECRET_ACCESS_KEY=kept", "SSH_AUTH_SOCK=/s"}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v", got)
	}
}

func FuzzParseSSHG(f *testing.F) {
	for _, name := range []string{"ssh_G_gpu-7", "ssh_G_edge-hop"} {
		out, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(out)
	}
	f.Add([]byte("proxyjump a@b:1,c\nidentityfile %%%h\nport x\nhostname -o\n"))
	f.Fuzz(func(t *testing.T, out []byte) {
		s, err := newSettings(Target{Host: "h"}, parseSSHG(out), &Options{})
		if err != nil {
			return
		}
		if CheckHost(s.hostName) != nil || CheckUser(s.user) != nil {
			t.Errorf("unchecked: %q %q", s.hostName, s.user)
		}
		for _, h := range s.jump {
			if h.check() != nil {
				t.Errorf("unchecked hop %+v", h)
			}
		}
	})
}
