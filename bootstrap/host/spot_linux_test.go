package host

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// fakeKubectl answers as the API does: a pod of a deployment, one of a DaemonSet,
// one on disk, one that has ended and one that is ending. It writes down what it is asked to change.
const fakeKubectl = `#!/bin/sh
case "$*" in
*"get pods"*)
	echo "pod team-a train uid-1 ReplicaSet Running here 600"
	echo "pod team-a quick uid-2 - Running here 1"
	echo "pod kube-system proxy uid-3 DaemonSet Running here 30"
	echo "pod kube-system static uid-4 Node Running here 30"
	echo "pod team-a done uid-5 Job Succeeded here 30"
	echo "pod team-a going uid-6 ReplicaSet Running ending 30" ;;
*"spot-notice}") [ ! -e "$STATE/marked" ] || echo 2026-12-01T00:00:00Z ;;
*"spot-cordoned}") [ ! -e "$STATE/marked" ] || echo 2026-12-01T00:00:00Z ;;
*"unschedulable}") ;;
*"patch node"*)
	touch "$STATE/marked"
	echo "$*" | sed 's/.*--type merge -p /patch /' >>"$STATE/log" ;;
*create*) echo "$* $(cat)" | sed 's/.*--raw /evict /' >>"$STATE/log" ;;
esac
`

// The services answer as the providers' documentation says, see spot-watch.sh.
const fakeCurl = `#!/bin/sh
[ -e "$STATE/notice" ] || { case "$*" in *api/token | *compute/name*) ;; *) exit 22 ;; esac; }
case "$*" in
*"X PUT"*"ttl-seconds: 60 http://169.254.169.254/latest/api/token") echo TOKEN ;;
*"token: TOKEN http://169.254.169.254/latest/meta-data/spot/instance-action") echo '{"action": "terminate", "time": "2026-12-01T00:02:00Z"}' ;;
*"Metadata-Flavor: Google http://169.254.169.254/computeMetadata/v1/instance/preempted") echo TRUE ;;
*"Metadata: true http://169.254.169.254/metadata/instance/compute/name?api-version=2020-06-01&format=text") echo set_1 ;;
*"Metadata: true http://169.254.169.254/metadata/scheduledevents?api-version=2020-07-01")
	echo "{\"DocumentIncarnation\":1,\"Events\":[{\"EventId\":\"a\",\"EventType\":\"Reboot\",\"Resources\":[\"set_1\"]},{\"EventId\":\"b\",\"EventType\":\"Preempt\",\"Resources\":[\"$(cat "$STATE/notice")\"]}]}" ;;
*) echo "unexpected: $*" >>"$STATE/log"; exit 22 ;;
esac
`

// watch runs the watcher until until says that its log is as it should be. files
// are laid beside the log: what the metadata service says, a mark of an earlier notice.
func watch(t *testing.T, provider string, laid map[string]string, until func(log string) bool) string {
	t.Helper()
	dir := t.TempDir()
	files := map[string]string{"curl": fakeCurl, "k3s": fakeKubectl, "watch": strings.ReplaceAll(string(spotWatchScript), "/run/gpuctl-spot", dir+"/given")}
	maps.Copy(files, laid)
	if err := os.Mkdir(filepath.Join(dir, "given"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), "sh", filepath.Join(dir, "watch"), provider, "gpu-1", dir, "15", "0.05")
	cmd.Env = []string{"PATH=" + dir + ":" + os.Getenv("PATH"), "STATE=" + dir}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		_ = cmd.Wait()
	}()
	deadline := time.After(20 * time.Second)
	for {
		data, err := os.ReadFile(filepath.Join(dir, "log"))
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		if until(string(data)) {
			return string(data)
		}
		select {
		case <-deadline:
			return string(data)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func TestSpotWatchEmptiesTheNodeOnNotice(t *testing.T) {
	for provider, said := range map[string]map[string]string{
		"aws": {"notice": "yes"}, "gcp": {"notice": "yes"}, "azure": {"notice": "set_1"}, "nebius": {"given/notice": ""},
	} {
		t.Run(provider, func(t *testing.T) {
			t.Parallel()
			log := watch(t, provider, said, func(log string) bool {
				return strings.Contains(log, "uid-1") && strings.Contains(log, "uid-2") && strings.Contains(log, `"unschedulable":true`)
			})
			for _, want := range []string{
				`patch {"metadata":{"annotations":{"gpuctl.dev/spot-notice":"`, `"gpuctl.dev/spot-cordoned":"`, `"spec":{"unschedulable":true}`,
				`evict /api/v1/namespaces/team-a/pods/train/eviction -f - {"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":"train","namespace":"team-a"},"deleteOptions":{"gracePeriodSeconds":15,"preconditions":{"uid":"uid-1"}}}`,
				`"name":"quick","namespace":"team-a"},"deleteOptions":{"gracePeriodSeconds":1,`,
			} {
				if !strings.Contains(log, want) {
					t.Errorf("%s is missing in\n%s", want, log)
				}
			}
			for _, no := range []string{"proxy", "static", "done", "going"} {
				if strings.Contains(log, "/"+no+"/") || strings.Contains(log, "unexpected") {
					t.Errorf("%s stands in\n%s", no, log)
				}
			}
		})
	}
}

// An event of another machine of the scale set is none of ours.
func TestSpotWatchHearsOfAnotherMachine(t *testing.T) {
	looks := 0
	log := watch(t, "azure", map[string]string{"notice": "set_2"}, func(log string) bool { looks++; return log != "" || looks > 25 })
	if log != "" {
		t.Errorf("another machine's event was taken for this one's:\n%s", log)
	}
}

// A machine that came back, or whose notice was taken back, opens its node again.
func TestSpotWatchTakesAnOldMarkBack(t *testing.T) {
	log := watch(t, "aws", map[string]string{"marked": ""}, func(log string) bool { return log != "" })
	if want := `patch {"metadata":{"annotations":{"gpuctl.dev/spot-notice":null,"gpuctl.dev/spot-cordoned":null}},"spec":{"unschedulable":null}}`; !strings.Contains(log, want) {
		t.Errorf("the log says\n%s\nwithout %s", log, want)
	}
}
