//go:build lab

package e2e_test

import (
	"github.com/gpuctl/gpuctl/e2e/lab/gpu"
	simulated "github.com/gpuctl/gpuctl/e2e/lab/gpu/scenario"
	"github.com/gpuctl/gpuctl/e2e/scene"
)

// foreignCard shows one processing accelerator of AMD on the PCI bus (MI300X,
// https://pci-ids.ucw.cz/read/PC/1002/74a1).
const foreignCard = `d=/run/t/pci/0000:03:00.0
mkdir -p $d
echo 0x1002 >$d/vendor
echo 0x74a1 >$d/device
echo 0x120000 >$d/class
mount -t overlay none -o lowerdir=/run/t/pci:/sys/bus/pci/devices /sys/bus/pci/devices`

// managed runs something as the fabric manager of a board with NVSwitches.
const managed = "systemd-run --quiet --collect --unit=nvidia-fabricmanager sleep infinity"

// all makes every card of a machine another one, without NVSwitches.
func all(pci, model string) func(*gpu.Scenario) {
	return func(s *gpu.Scenario) {
		s.NVSwitches = 0
		for i := range s.GPUs {
			s.GPUs[i].PCI, s.GPUs[i].Model, s.GPUs[i].MIG = pci, model, nil
		}
	}
}

// busFailures are of what is on the PCI bus, against what was promised.
func busFailures() []failure {
	none := func(s *gpu.Scenario) { s.GPUs, s.NVSwitches, s.Driver = nil, 0, "" }
	return []failure{
		{name: "no GPU where eight were promised", gpus: none, want: codes{"gpu-none": "blocks"}, shows: "8 promised"},
		{name: "seven of eight", gpus: func(s *gpu.Scenario) { s.GPUs = s.GPUs[:7] }, want: codes{"gpu-fewer": "blocks"}, shows: "8 promised, 7"},
		{name: "more than promised", member: func(m *scene.Member) { m.GPUs = 4 }, want: codes{"gpu-more": "warns"}, shows: "4 promised, 8"},
		{
			name: "another model", member: func(m *scene.Member) { m.More = map[string]any{"gpuModel": "H200"} },
			want: codes{"gpu-model-differs": "warns"}, shows: "H200",
		},
		{name: "a GPU of AMD", gpus: none, want: codes{"gpu-other-vendor": "blocks"}, do: foreignCard, undo: "umount /sys/bus/pci/devices"},
		{
			name: "a card that no driver of today knows", want: codes{"gpu-too-old": "blocks"},
			gpus: func(s *gpu.Scenario) {
				all("10de:102d", "Tesla K80")(s)
				s.Driver, s.CUDA, s.Modules = "470.256.02", "11.4", simulated.Proprietary
			},
		},
		{name: "a card too new for the catalogue", gpus: all("10de:3fff", "NVIDIA X1"), want: codes{"gpu-unknown-card": "informs"}},
		{
			name: "two models", want: codes{"gpu-models-mixed": "informs"}, shows: "A100",
			gpus: func(s *gpu.Scenario) { s.NVSwitches, s.GPUs[7] = 0, gpu.A100(1).GPUs[0] },
		},
	}
}

// driverFailures are of the driver.
func driverFailures() []failure {
	hidden := func(s *gpu.Scenario) {
		for i := range s.GPUs {
			s.Faults.Hidden = append(s.Faults.Hidden, i)
		}
	}
	return []failure{
		{name: "no driver", gpus: func(s *gpu.Scenario) { s.Driver = "" }, want: codes{"driver-missing": "informs"}},
		{
			name: "nouveau holds the GPUs", want: codes{"nouveau-loaded": "informs", "driver-missing": "informs"},
			gpus: func(s *gpu.Scenario) { s.Driver, s.Faults.Nouveau = "", true },
		},
		{name: "the driver is not loaded", gpus: func(s *gpu.Scenario) { s.Faults.NotLoaded = true }, want: codes{"driver-not-loaded": "informs"}},
		{
			name: "the kernel refuses an unsigned module", modelled: "the variable of the firmware and the kernel's log",
			want: codes{"secure-boot-unsigned": "blocks"},
			gpus: func(s *gpu.Scenario) { s.Faults.NotLoaded = true },
			do: `mount -t tmpfs none /sys/firmware
mkdir -p /sys/firmware/efi/efivars
printf '\006\000\000\000\001' >/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c
` + program("/usr/local/bin/dmesg", `echo "[    3.141592] Loading of unsigned module is rejected"`),
			undo: "umount /sys/firmware\nrm /usr/local/bin/dmesg",
		},
		{
			name: "an upgrade under the running driver", want: codes{"driver-version-mismatch": "informs"}, shows: "580.178.09",
			gpus: func(s *gpu.Scenario) { s.Faults.Library = "580.178.09" },
		},
		{
			name: "nvidia-smi is gone", want: codes{"driver-library-missing": "blocks"},
			do: "mv /usr/bin/nvidia-smi /run/nvidia-smi", undo: "mv /run/nvidia-smi /usr/bin/nvidia-smi",
		},
		{
			name: "Blackwell with the proprietary modules", want: codes{"driver-needs-open": "informs"}, shows: "proprietary",
			gpus: func(s *gpu.Scenario) {
				all("10de:2901", "NVIDIA B200")(s)
				hidden(s)
				s.Modules = simulated.Proprietary
			},
		},
		{
			name: "Volta with the open modules", want: codes{"driver-needs-proprietary": "informs"}, shows: "V100",
			gpus: func(s *gpu.Scenario) {
				all("10de:1db6", "Tesla V100-PCIE-32GB")(s)
				hidden(s)
			},
		},
		{
			name: "a driver too old for today's images", want: codes{"driver-cuda-major": "informs"}, shows: "535.104.05",
			gpus: func(s *gpu.Scenario) { s.Driver, s.CUDA = "535.104.05", "12.2" },
		},
		{
			name: "a driver from a runfile", want: codes{"driver-runfile": "informs"},
			do: "touch /usr/bin/nvidia-uninstall", undo: "rm /usr/bin/nvidia-uninstall",
		},
		{
			name: "two package sources for the toolkit", want: codes{"apt-sources-conflict": "warns"},
			do: `for f in one two; do
  echo "deb https://nvidia.github.io/libnvidia-container/stable/deb/amd64 /" >/etc/apt/sources.list.d/lab-$f.list
done`,
			undo: "rm /etc/apt/sources.list.d/lab-one.list /etc/apt/sources.list.d/lab-two.list",
		},
		{
			name: "the operator's toolkit is left", want: codes{"toolkit-operator-copy": "warns"},
			do: "mkdir -p /usr/local/nvidia/toolkit\ncp /bin/true /usr/local/nvidia/toolkit/nvidia-container-runtime", undo: "rm -r /usr/local/nvidia",
		},
		{
			name: "half a toolkit", want: codes{"toolkit-incomplete": "informs"}, shows: "nvidia-container-runtime",
			do: program("/usr/bin/nvidia-ctk", `echo "NVIDIA Container Toolkit CLI version 1.17.8"`), undo: "rm /usr/bin/nvidia-ctk",
		},
	}
}

// healthFailures are of GPUs that the driver serves, or did.
func healthFailures() []failure {
	xid := func(numbers ...int) func(*gpu.Scenario) {
		return func(s *gpu.Scenario) {
			for i, n := range numbers {
				s.Faults.Xid = append(s.Faults.Xid, simulated.Xid{GPU: i, Code: n, Text: "pid=0, name=<unknown>"})
			}
		}
	}
	return []failure{
		{name: "the driver sees seven of eight", gpus: func(s *gpu.Scenario) { s.Faults.Hidden = []int{3} }, want: codes{"gpu-count-differs": "blocks"}, shows: "8 on the PCI bus, 7"},
		{
			name: "a GPU has fallen off the bus", want: codes{"gpu-lost": "blocks"}, shows: "0000:91:00.0",
			gpus: func(s *gpu.Scenario) {
				s.Faults.Xid, s.Faults.Lost = []simulated.Xid{{GPU: 5, Code: 79, Text: "GPU has fallen off the bus."}}, []int{5}
			},
		},
		{
			name: "NVSwitches without a fabric manager", want: codes{"fabric-manager-down": "blocks"}, shows: "4 NVSwitches",
			gpus: func(s *gpu.Scenario) { s.Faults.Fabric = "In Progress" },
			do:   "systemctl stop nvidia-fabricmanager", undo: managed,
		},
		{
			name: "the fabric does not come up", modelled: "the manager is a unit of its name", want: codes{"fabric-not-ready": "blocks"}, shows: "8 of 8",
			gpus: func(s *gpu.Scenario) { s.Faults.Fabric = "In Progress" },
		},
		{
			name: "hardware errors", gpus: xid(48, 64, 74, 119), shows: "Xid 119",
			want: codes{"gpu-ecc-uncorrected": "warns", "gpu-remap-failed": "warns", "gpu-nvlink-error": "warns", "gpu-gsp-timeout": "warns"},
		},
		{
			name: "errors that a program or a reset ends", gpus: xid(13, 94, 109), shows: "Xid 109",
			want: codes{"gpu-application-xid": "informs", "gpu-ecc-contained": "informs", "gpu-xid": "warns"},
		},
		{
			name: "the driver asks for a reset", want: codes{"gpu-recovery-needed": "warns"}, shows: "GPU Reset Required",
			gpus: func(s *gpu.Scenario) {
				s.Faults.Xid = []simulated.Xid{{GPU: 2, Code: 154, Text: "GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)"}}
			},
		},
		{
			name: "MIG waits for a reset", want: codes{"mig-pending": "warns"}, shows: "GPU 0: Disabled, pending Enabled",
			gpus: func(s *gpu.Scenario) { s.GPUs[0].MIG = &simulated.MIG{Current: "Disabled", Pending: "Enabled"} },
		},
	}
}
