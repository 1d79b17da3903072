package k3s

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/gpuctl/gpuctl/bootstrap/remote"
)

// saying is a machine on which every command prints the same; it keeps the commands.
type saying struct {
	stdout, stderr string
	err            error
	cmds           *[]remote.Cmd
}

func (s saying) Run(_ context.Context, c remote.Cmd) (remote.Result, error) {
	if s.cmds != nil {
		*s.cmds = append(*s.cmds, c)
	}
	return remote.Result{Stdout: []byte(s.stdout), Stderr: []byte(s.stderr)}, s.err
}

func TestSnapshotsAsK3sTellsOfThem(t *testing.T) {
	// The words were seen on k3s v1.36.3.
	saved, err := SaveSnapshot(t.Context(), saying{stderr: `time="x" level=info msg="Snapshot mine-gpu-1-1764600000 saved."` + "\n"}, "", "mine")
	if err != nil || saved != "mine-gpu-1-1764600000" {
		t.Errorf("%q %v", saved, err)
	}
	if _, err := SaveSnapshot(t.Context(), saying{}, "", "mine"); err == nil {
		t.Error("saved without a word of it")
	}
	if _, err := SaveSnapshot(t.Context(), saying{}, "", "a/../b"); err == nil {
		t.Error("a path is a name")
	}
	if err := DeleteSnapshot(t.Context(), saying{stderr: `level=warning msg="Snapshot nosuch not found."`}, "", "nosuch"); !errors.Is(err, ErrNoSnapshot) {
		t.Errorf("%v", err)
	}
	const list = `{"kind":"List","items":[
	 {"spec":{"snapshotName":"b","nodeName":"n","location":"file:///var/b"},"status":{"size":"2048","creationTime":"2026-12-01T10:00:00Z","readyToUse":true}},
	 {"spec":{"snapshotName":"a","location":"s3://bucket/a"},"status":{"size":"2M","creationTime":"2026-12-01T09:00:00Z"}}]}`
	all, err := ListSnapshots(t.Context(), saying{stdout: list}, "", "gpu-1")
	if err != nil || len(all) != 2 || all[0].Name != "a" || all[0].Path != "" || all[1].Path != "/var/b" || all[1].Size != 2048 || all[1].Server != "gpu-1" {
		t.Errorf("%+v %v", all, err)
	}
}

func FuzzParseSnapshots(f *testing.F) {
	f.Add([]byte(`{"items":[{"spec":{"snapshotName":"b","location":"file:///var/b"},"status":{"size":"2048"}}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		all, err := parseSnapshots(data, "s")
		for _, s := range all {
			if err != nil || s.Path != "" && !strings.HasPrefix(s.Path, "/") {
				t.Errorf("%+v %v", s, err)
			}
		}
	})
}

func TestTheSupervisorIsAskedInTheNameOfAServer(t *testing.T) {
	asked := ""
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, secret, _ := r.BasicAuth()
		asked += r.Method + " " + r.URL.Path + " " + user + ":" + secret + "\n"
		if r.Method == http.MethodPut {
			var body struct {
				NewToken string `json:"newToken"`
			}
			if err := json.NewDecoder(r.Body).Decode(&body); err != nil || body.NewToken != "fresh" {
				t.Errorf("%+v %v", body, err)
			}
			return
		}
		_, _ = w.Write([]byte(`{"members":[{"ID":1,"name":"cp-1-11aa22bb","peerURLs":["https://10.0.0.1:2380"]},{"name":"cp-2-33cc44dd","isLearner":true}]}`))
	}))
	defer server.Close()
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	c := Credentials{ServerToken: "K10" + strings.Repeat("a", 64) + "::server:old",
		Kubeconfig: []byte("clusters:\n- cluster:\n    certificate-authority-data: " + base64.StdEncoding.EncodeToString(ca) + "\n")}
	dial := func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, server.Listener.Addr().String())
	}
	s, err := NewSupervisor(c, dial)
	if err != nil {
		t.Fatal(err)
	}
	members, err := s.Members(t.Context())
	if err != nil || len(members) != 2 || members[0].Node() != "cp-1" || !members[1].IsLearner {
		t.Errorf("%+v %v", members, err)
	}
	if err := s.RotateToken(t.Context(), "fresh"); err != nil {
		t.Error(err)
	}
	if _, err := s.Members(t.Context()); err != nil {
		t.Error(err)
	}
	if want := "GET /db/info server:old\nPUT /v1-k3s/token server:old\nGET /db/info server:fresh\n"; asked != want {
		t.Errorf("asked\n%swant\n%s", asked, want)
	}
	if _, err := NewSupervisor(Credentials{Kubeconfig: []byte("x: 1")}, dial); err == nil {
		t.Error("a kubeconfig without a cluster")
	}
}

// TestRestoreScript runs the script on a unit and a k3s that only note what they are told.
func TestRestoreScript(t *testing.T) {
	const says = `msg="Managed etcd cluster membership has been reset, restart without --cluster-reset flag now"`
	for name, tc := range map[string]struct {
		file, k3s string
		code      int
		told      string
	}{
		"restored":       {"snap", `echo "$*" >>"$BOX/told"; echo '` + says + `'`, 0, "stop k3s.service server --cluster-reset --cluster-reset-restore-path=BOX/snap"},
		"with its data":  {"", `echo "$*" >>"$BOX/told"; echo '` + says + `'`, 0, "stop k3s.service server --cluster-reset"},
		"no such file":   {"none", "exit 0", 22, "stop k3s.service"},
		"it says no":     {"snap", `echo 'level=fatal msg="no bootstrap data found in datastore"'; exit 1`, 32, "stop k3s.service"},
		"it ends with 0": {"snap", `echo 'Shutdown request received'`, 32, "stop k3s.service"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBox(t)
			b.command("systemctl", `echo "$*" >>"$BOX/told"`)
			b.command("k3s", tc.k3s)
			b.file("snap", "", 0o600)
			b.file("told", "", 0o644)
			b.file("data/server/db/reset-flag", "", 0o600)
			file := tc.file
			if file != "" {
				file = b.path(file)
			}
			out, code := b.run("set -eu\n" + restoreBody + "restore k3s " + b.path("bin/k3s") + " " + b.path("data") + " '" + file + "'\n")
			told := strings.ReplaceAll(strings.Join(strings.Fields(b.read("told")), " "), b.dir, "BOX")
			if code != tc.code || told != tc.told {
				t.Errorf("code %d, told %q; want %d, %q\n%s", code, told, tc.code, tc.told, out)
			}
		})
	}
}

func TestTokensStandInNoArgument(t *testing.T) {
	full := "K10" + strings.Repeat("a", 64) + "::server:"
	server, agent := With(full+"old", "sesame"), With(strings.Replace(full, "server", "node", 1)+"old", "open")
	if server != full+"sesame" || !strings.HasSuffix(agent, "::node:open") {
		t.Fatalf("%s %s", server, agent)
	}
	joined := serverWant()
	joined.ServerURL = "https://10.0.0.1:6443"
	for name, c := range map[string]struct {
		want Want
		env  map[string]string
	}{
		"the first server": {serverWant(), map[string]string{"SERVER_TOKEN": "sesame", "AGENT_TOKEN": "open"}},
		"a joined server":  {joined, map[string]string{"SERVER_TOKEN": server, "AGENT_TOKEN": "open"}},
		"an agent":         {agentWant(), map[string]string{"AGENT_TOKEN": agent}},
	} {
		var cmds []remote.Cmd
		if err := WriteTokens(t.Context(), c.want, Access{On: saying{cmds: &cmds}}, Tokens{server, agent}, func(string, ...any) {}); err != nil {
			t.Fatal(err)
		}
		cmd := cmds[0]
		if strings.Contains(cmd.Script+strings.Join(cmd.Args, " "), "sesame") || strings.Contains(cmd.Script+strings.Join(cmd.Args, " "), "::node:open") {
			t.Errorf("%s: a secret stands in the script", name)
		}
		for key, value := range c.env {
			if cmd.Env[key] != value {
				t.Errorf("%s: %s is %q, want %q", name, key, cmd.Env[key], value)
			}
		}
		if len(cmd.Env) != len(c.env) || len(cmd.Secrets) == 0 {
			t.Errorf("%s: %d variables, secrets %d", name, len(cmd.Env), len(cmd.Secrets))
		}
	}
}

func TestCertificatesThatStayAreAnError(t *testing.T) {
	if err := RotateCertificates(t.Context(), serverWant(), Access{On: saying{stdout: "same"}}, func(string, ...any) {}); err == nil {
		t.Error("the certificates of before count as new")
	}
}
