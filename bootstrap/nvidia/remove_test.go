package nvidia

import (
	"strings"
	"testing"

	"github.com/gpuctl/gpuctl/bootstrap/host"
	"github.com/gpuctl/gpuctl/bootstrap/plan"
	"github.com/gpuctl/gpuctl/bootstrap/remote/remotetest"
)

// withDriver is a machine on which gpuctl installed the driver.
func withDriver(ours bool) host.Facts {
	f := bare("debian", "12", "2331")
	f.Packages = host.Known(host.Packages{Manager: "apt", Installed: map[string]string{
		"nvidia-open": "580.95.05-1", "libnvidia-compute": "580.95.05-1", "nvidia-driver-pinning-580": "580-1", "linux-headers-6.1.0": "6.1",
		"nvidia-container-toolkit": "1.20.0-1", "libnvidia-container1": "1.20.0-1", "cuda-drivers-fabricmanager": "580.95.05-1", "docker.io": "24",
	}})
	if ours {
		f.Files = host.Known(map[string]host.File{PathNouveau: {Kind: "file"}})
	}
	return f
}

func TestTheDriverOfTheImageStays(t *testing.T) {
	if got := RemovePlan("gpu-1", withDriver(false), nil); len(got) != 0 {
		t.Errorf("planned %+v", got)
	}
}

func TestTheDriverGoesWhenAsked(t *testing.T) {
	on := remotetest.New(t)
	on.Expect("remove the NVIDIA driver")
	actions := RemovePlan("gpu-1", withDriver(true), on, "gpu-1/k3s-reset")
	if len(actions) != 1 {
		t.Fatalf("planned %+v", actions)
	}
	a := actions[0]
	if a.ID != "gpu-1/driver-remove" || a.Consent != plan.ConsentDriver || strings.Join(a.Needs, " ") != "gpu-1/k3s-reset" ||
		a.Changes[0] != "purge cuda-drivers-fabricmanager, libnvidia-compute, nvidia-driver-pinning-580, nvidia-open" {
		t.Errorf("planned %+v", a)
	}
	if err := a.Apply(t.Context(), func(string, ...any) {}); err != nil {
		t.Fatal(err)
	}
	cmd := on.Calls()[0].Cmd
	if got := strings.Join(cmd.Args[2:], " "); !cmd.Sudo || got != PathNouveau+" "+PathDriverSource+" "+PathDriverKey+" cuda-drivers-fabricmanager libnvidia-compute nvidia-driver-pinning-580 nvidia-open" {
		t.Errorf("arguments %s", got)
	}
}
