package host

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "rewrite golden files")

func golden(t *testing.T, file string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", file)
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != string(want) {
		t.Errorf("%s differs (run with -update to accept):\n%s", file, got)
	}
}

func caseFile(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata/cases", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestOSRelease(t *testing.T) {
	for file, want := range map[string]OS{
		"019-merged-output.txt": {ID: "ubuntu", Like: []string{"debian"}, VersionID: "22.04", Codename: "jammy", PrettyName: "Ubuntu 22.04.4 LTS", BaseID: "ubuntu", BaseVersion: "22.04", Family: "debian"},
		"023-a.os-release":      {ID: "linuxmint", Like: []string{"ubuntu", "debian"}, VersionID: "22", Codename: "wilma", PrettyName: "Linux Mint 22", BaseID: "ubuntu", BaseVersion: "24.04", Family: "debian"},
		"023-b.os-release":      {ID: "linuxmint", Like: []string{"debian"}, VersionID: "6", Codename: "faye", PrettyName: "LMDE 6 (faye)", BaseID: "debian", BaseVersion: "12", Family: "debian"},
		"023-c.os-release":      {ID: "hce", Like: []string{}, VersionID: "2.0", PrettyName: "Huawei Cloud EulerOS 2.0 (x86_64)", BaseID: "hce", BaseVersion: "2.0"},
		"025-os-release":        {ID: "debian", Like: []string{}, VersionID: "13", Codename: "trixie", PrettyName: "Debian GNU/Linux 13 (trixie)", BaseID: "debian", BaseVersion: "13", Family: "debian"},
	} {
		got, err := parseOSRelease(caseFile(t, file))
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, %v; want %+v", file, got, err, want)
		}
	}
	if _, err := parseOSRelease("NAME=x\n"); err == nil {
		t.Error("a file without ID was accepted")
	}
}

func TestOnlyListenersAreListeners(t *testing.T) {
	got, err := parsePorts(caseFile(t, "032-ss.txt"))
	if err != nil {
		t.Fatal(err)
	}
	want := []Listener{
		{"tcp", "*", 6443, "kubelite", 2211}, {"tcp", "*", 10250, "kubelite", 2211},
		{"tcp", "127.0.0.1", 10248, "kubelite", 2211}, {"tcp", "0.0.0.0", 22, "sshd", 880},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v", got)
	}
	got, err = parsePorts("udp   UNCONN 0      0            0.0.0.0:8472       0.0.0.0:*\ntcp   LISTEN 0 4096 [::1]:10248 [::]:* users:((\"k3s-server\",pid=7,fd=1))\n")
	if err != nil || !reflect.DeepEqual(got, []Listener{{"udp", "0.0.0.0", 8472, "", 0}, {"tcp", "::1", 10248, "k3s-server", 7}}) {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestDriverVersionLineHasTwoShapes(t *testing.T) {
	for line, want := range map[string]Driver{
		"nvrm= NVIDIA UNIX x86_64 Kernel Module  580.173.02  Tue Jun 23 08:38:17 UTC 2026":                                                         {LoadedVersion: "580.173.02", Flavour: "proprietary"},
		"nvrm= NVIDIA UNIX Open Kernel Module for x86_64  570.124.06  Release Build  (root@gpu-2)  Wed Oct 15 09:12:44 UTC 2025":                   {LoadedVersion: "570.124.06", Flavour: "open"},
		"nvrm= NVIDIA UNIX Open Kernel Module for aarch64  580.95.05  Release Build  (dvs-builder@U22-I3-AE18-23-3)  Tue Sep 23 09:55:41 UTC 2025": {LoadedVersion: "580.95.05", Flavour: "open"},
		"nvrm= something else": {},
		"module=nouveau 3\nmodule=nvidia 0\nlibrary=1\nlibrary=580.82.07\n":   {Modules: map[string]int{"nouveau": 3, "nvidia": 0}, LibraryVersion: "580.82.07"},
		"node=/dev/nvidia0\nnode=/dev/nvidiactl\nfile=580.82.07\nrunfile=yes": {Nodes: []string{"/dev/nvidia0", "/dev/nvidiactl"}, FileVersion: "580.82.07", Runfile: true},
	} {
		got, err := parseDriver(line)
		if want.Modules == nil {
			want.Modules = map[string]int{}
		}
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %+v, %v", line, got, err)
		}
	}
}

// The form of nvidia-smi -L with MIG devices is that of the MIG user guide.
func TestSMIKeepsSlicesWithTheirGPU(t *testing.T) {
	got, err := parseSMI(`rc 0
row 0, GPU-a, NVIDIA H100 80GB HBM3, 00000000:18:00.0, 81559, 580.95.05, Enabled, Enabled, Enabled, Enabled, 9.0, Completed
row 1, GPU-b, NVIDIA H100 80GB HBM3, 00000000:2A:00.0, 81559, 580.95.05, Disabled, Disabled, Enabled, Enabled, 9.0, Completed
list GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-a)
list   MIG 3g.40gb      Device  0: (UUID: MIG-1c2b)
list   MIG 1g.10gb+me   Device  1: (UUID: MIG-3d4e)
list GPU 1: NVIDIA H100 80GB HBM3 (UUID: GPU-b)
`)
	if err != nil || len(got.GPUs) != 2 {
		t.Fatalf("%+v, %v", got, err)
	}
	if want := []Slice{{"MIG-1c2b", "3g.40gb"}, {"MIG-3d4e", "1g.10gb+me"}}; !reflect.DeepEqual(got.GPUs[0].Slices, want) || got.GPUs[1].Slices != nil {
		t.Errorf("%+v", got.GPUs)
	}
}

func TestSMIKeepsEveryGPU(t *testing.T) {
	// Phrases in brackets as in leptonai/gpud#1133, enkore/i3pystatus#776 and #850.
	got, err := parseSMI(`rc 0
row 0, GPU-a, NVIDIA H100 80GB HBM3, 00000000:18:00.0, 81559, 550.90.07, Disabled, Enabled, Enabled, Enabled, 9.0, Completed
row 1, GPU-b, NVIDIA A30, 00000000:3A:00.0, [N/A], 550.90.07, [N/A], [N/A], [Unknown Error], Disabled, 8.0, N/A
row 3, GPU-c, NVIDIA A30, 00010000:5D:00.0, [GPU requires reset], 550.90.07, [GPU requires reset], Disabled, [Insufficient Permissions], Enabled, 8.0, In Progress
`)
	want := SMI{DriverVersion: "550.90.07", GPUs: []GPU{
		{Index: 0, UUID: "GPU-a", Name: "NVIDIA H100 80GB HBM3", PCI: "0000:18:00.0", MemoryMiB: 81559, MIG: "Disabled", MIGPending: "Enabled", ECC: "Enabled", Persistence: "Enabled", Compute: "9.0", Fabric: "Completed"},
		{Index: 1, UUID: "GPU-b", Name: "NVIDIA A30", PCI: "0000:3a:00.0", Persistence: "Disabled", Compute: "8.0"},
		{Index: 3, UUID: "GPU-c", Name: "NVIDIA A30", PCI: "10000:5d:00.0", MIGPending: "Disabled", Persistence: "Enabled", Compute: "8.0", Fabric: "In Progress", Trouble: "GPU requires reset"},
	}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestSMISaysWhatFailed(t *testing.T) {
	for text, want := range map[string]SMI{
		"rc 18\nrow Failed to initialize NVML: Driver/library version mismatch\nrow NVML library version: 580.178\n": {ExitCode: 18, Message: "Failed to initialize NVML: Driver/library version mismatch; NVML library version: 580.178"},
		"rc 6\nrow No devices were found\n": {ExitCode: 6, Message: "No devices were found"},
		"rc 15\nrow Unable to determine the device handle for GPU1: 0000:35:00.0: Unknown Error\nrow Unable to determine the device handle for GPU0000:CB:00.0: Unknown Error\nrow Unable to determine the device handle for gpu 0000:01:00.0: Not Found\n": {
			ExitCode: 15, Lost: []string{"0000:35:00.0", "0000:cb:00.0", "0000:01:00.0"},
			Message: "Unable to determine the device handle for GPU1: 0000:35:00.0: Unknown Error; Unable to determine the device handle for GPU0000:CB:00.0: Unknown Error; Unable to determine the device handle for gpu 0000:01:00.0: Not Found",
		},
		"rc 15\nrow Unable to determine the device handle for GPU 0000:02:00.0: GPU is lost.  Reboot the system to recover this GPU\n": {
			ExitCode: 15, Lost: []string{"0000:02:00.0"}, Message: "Unable to determine the device handle for GPU 0000:02:00.0: GPU is lost.  Reboot the system to recover this GPU",
		},
	} {
		if got, err := parseSMI(text); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
	if _, err := parseSMI("row 0, x\n"); err == nil {
		t.Error("an answer without exit code was accepted")
	}
}

func TestKernelLogKeepsXids(t *testing.T) {
	got, err := parseKernelLog(caseFile(t, "041-dmesg.txt"))
	if err != nil {
		t.Fatal(err)
	}
	var short []string
	for _, m := range got {
		short = append(short, m.PCI+" "+string(rune('0'+m.Xid/100))+string(rune('0'+m.Xid/10%10))+string(rune('0'+m.Xid%10)))
	}
	want := "0000:cb:00 013|0000:cb:00 109|0000:9b:00 094|0019:01:00 149|0018:01:00 145|0000:2a:00 120|0000:2a:00 154|0000:dc:00 045|0000:01:00 031"
	if strings.Join(short, "|") != want {
		t.Errorf("%s", strings.Join(short, "|"))
	}
}

func TestContainerdNamesItsRuntimes(t *testing.T) {
	got := parseContainerd([]string{
		"version = 3", `imports = ["/var/lib/rancher/k3s/agent/etc/containerd/config-v3.toml.d/*.toml"]`,
		"[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]",
		"[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]",
		"[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.'nvidia']",
		"[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.'nvidia'.options]",
		`  BinaryName = "/usr/bin/nvidia-container-runtime"`,
	})
	want := ContainerdConfig{Schema: 3, Imports: `["/var/lib/rancher/k3s/agent/etc/containerd/config-v3.toml.d/*.toml"]`, Runtimes: map[string]string{"runc": "", "nvidia": "/usr/bin/nvidia-container-runtime"}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v", got)
	}
	v2 := parseContainerd([]string{"version = 2", `[plugins."io.containerd.grpc.v1.cri".containerd.runtimes."nvidia".options]`, `BinaryName = "/x"`})
	if v2.Schema != 2 || v2.Runtimes["nvidia"] != "/x" {
		t.Errorf("%+v", v2)
	}
}

func TestPackages(t *testing.T) {
	got, err := parsePackages("manager=apt\npkg|hi |nvidia-driver-580|580.82.07-0ubuntu1\npkg|rc |nvidia-driver-535|535.1\npkg|iF |containerd.io|1.7.1\npkg|un |docker|\nlock=unattended-upgr (4750)\nsource=/etc/apt/sources.list.d/a.list\nunit=gpuctl-apt-toolkit\nunattended=yes\naudit=The following packages are only half configured\n")
	want := Packages{
		Manager: "apt", Installed: map[string]string{"nvidia-driver-580": "580.82.07-0ubuntu1", "containerd.io": "1.7.1"},
		Broken: []string{"containerd.io"}, Held: []string{"nvidia-driver-580"}, LockHolders: []string{"unattended-upgr (4750)"},
		NVIDIASources: []string{"/etc/apt/sources.list.d/a.list"}, AptUnits: []string{"gpuctl-apt-toolkit"}, UnattendedUpgrades: true,
		Audit: "The following packages are only half configured",
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestClockIsBoundedByTheRoundTrip(t *testing.T) {
	sent := time.Unix(1736157600, 0)
	at := func(first, last float64) time.Duration {
		f := Known(Clock{First: sent.Add(time.Duration(first * 1e9)), Last: sent.Add(time.Duration(last * 1e9))})
		return compareClocks(f, sent, sent.Add(3*time.Second)).Value.Offset()
	}
	for _, c := range []struct {
		first, last float64
		want        time.Duration
	}{
		{1, 2, 0},                        // right
		{3600, 3602, 3599 * time.Second}, // an hour ahead, less what the trip may have taken
		{-60, -59, -60 * time.Second},    // a minute behind
		{2.5, 3.5, 500 * time.Millisecond},
	} {
		if got := at(c.first, c.last); got != c.want {
			t.Errorf("first %v, last %v: %s, want %s", c.first, c.last, got, c.want)
		}
	}
}

// TestRecordedMachines reads whole outputs of the probe. Those named synthetic
// were made by hand from recorded parts.
func TestRecordedMachines(t *testing.T) {
	files, err := filepath.Glob("testdata/machines/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no machines: %v", err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".txt")
		t.Run(name, func(t *testing.T) {
			b, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			f, err := Parse(b, "M")
			if err != nil {
				t.Fatal(err)
			}
			got, err := json.MarshalIndent(f, "", " ")
			if err != nil {
				t.Fatal(err)
			}
			golden(t, "machines/"+name+".golden.json", append(got, '\n'))
		})
	}
}

func TestEverySectionHasABodyAndAReader(t *testing.T) {
	f, err := Parse([]byte("M begin x\n\nM end x ok \nM done\n"), "M")
	if err != nil {
		t.Fatal(err)
	}
	if f.OS.State != StateUnknown || f.OS.Reason() != "no answer to os" {
		t.Errorf("%+v", f.OS)
	}
	script := Command("M", Request{Device: "/dev/vdb"}).Script
	for _, s := range sections() {
		if !strings.Contains(script, "section "+s.Name+" ") {
			t.Errorf("%s is not in the script", s.Name)
		}
	}
	if n := len(Command("M", Request{}).Script); n > 14_500 {
		t.Errorf("the probe has grown to %d bytes; it goes up to every machine in every run", n)
	}
	if strings.Contains(script, "#SECTIONS#") {
		t.Error("the place of the sections is still there")
	}
}

func FuzzParse(f *testing.F) {
	for _, file := range []string{"019-merged-output.txt", "032-ss.txt", "041-dmesg.txt"} {
		b, err := os.ReadFile(filepath.Join("testdata/cases", file))
		if err != nil {
			f.Fatal(err)
		}
		for _, s := range []string{"os", "ports", "kernellog", "smi", "driver", "packages", "k3s", "files", "network", "disks", "others"} {
			f.Add(s, string(b))
		}
	}
	f.Add("smi", "rc 0\nrow 0, a, b, 0:1, 5, 6\n")
	f.Add("files", "file\t600 0 0 3\t-\t/etc/x\t-\n")
	f.Add("pci", "0000:01:00.0 0x10de 0x2330 0x030200 nvidia\n")
	f.Fuzz(func(t *testing.T, section, text string) {
		if strings.ContainsAny(section, " \n") {
			return
		}
		out := "M begin " + section + "\n" + text + "\nM end " + section + " ok \nM done\n"
		facts, err := Parse([]byte(out), "M")
		if err != nil {
			return
		}
		if facts.OS.Has() && facts.OS.Value.ID == "" {
			t.Error("an operating system without ID")
		}
		if b, err := json.Marshal(facts); err != nil || strings.Contains(string(b), "\x1b") {
			t.Errorf("facts cannot be shown: %v", err)
		}
		Findings(Want{Machine: "m", Kubernetes: "v1.36.3+k3s1"}, facts)
		Plan(Want{Machine: "m", GPU: true}, facts, nil)
	})
}
