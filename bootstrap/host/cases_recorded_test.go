package host

import (
	"strings"
	"testing"
)

// Case 037: the MIG tables of four driver branches, as the query that gpuctl
// asks answers for the same machines: tables changed their width three times,
// rows of slices look like GPUs in them, the query has neither trouble. Names,
// addresses, memory, modes and the number of slices are those of the tables;
// UUIDs are made up.
func TestMIGOfFourDriversCase037(t *testing.T) {
	for name, c := range map[string]struct {
		text   string
		driver string
		gpus   string // name, address and MIG mode of each
		slices []int
	}{
		"525": {`rc 0
row 0, GPU-a, NVIDIA H100 80GB HBM3, 00000000:04:00.0, 81559, 525.85.12, Enabled, Enabled, Enabled, Disabled, 9.0
row 1, GPU-b, NVIDIA H100 80GB HBM3, 00000000:05:00.0, 81559, 525.85.12, Enabled, Enabled, Enabled, Disabled, 9.0
list GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-a)
list   MIG 3g.40gb     Device  0: (UUID: MIG-a1)
list GPU 1: NVIDIA H100 80GB HBM3 (UUID: GPU-b)
list   MIG 3g.40gb     Device  0: (UUID: MIG-b1)
`, "525.85.12", "NVIDIA H100 80GB HBM3 0000:04:00.0 Enabled, NVIDIA H100 80GB HBM3 0000:05:00.0 Enabled", []int{1, 1}},
		"535": {`rc 0
row 0, GPU-a, NVIDIA A100-PCIE-40GB, 00000000:25:00.0, 40960, 535.129.03, Enabled, Enabled, Enabled, Enabled, 8.0, [N/A]
row 1, GPU-b, NVIDIA A100-PCIE-40GB, 00000000:85:00.0, 40960, 535.129.03, Disabled, Disabled, Enabled, Enabled, 8.0, [N/A]
list GPU 0: NVIDIA A100-PCIE-40GB (UUID: GPU-a)
list   MIG 2g.10gb     Device  0: (UUID: MIG-a1)
list   MIG 1g.10gb     Device  1: (UUID: MIG-a2)
list GPU 1: NVIDIA A100-PCIE-40GB (UUID: GPU-b)
`, "535.129.03", "NVIDIA A100-PCIE-40GB 0000:25:00.0 Enabled, NVIDIA A100-PCIE-40GB 0000:85:00.0 Disabled", []int{2, 0}},
		"550": {`rc 0
row 0, GPU-a, NVIDIA A100-SXM4-80GB, 00000000:4F:00.0, 81920, 550.54.14, Enabled, Enabled, Enabled, Enabled, 8.0, Completed
list GPU 0: NVIDIA A100-SXM4-80GB (UUID: GPU-a)
`, "550.54.14", "NVIDIA A100-SXM4-80GB 0000:4f:00.0 Enabled", []int{0}},
		"570": {`rc 0
row 0, GPU-a, NVIDIA GH200 480GB, 00000009:01:00.0, 97871, 570.133.20, Enabled, Enabled, Enabled, Disabled, 9.0, [N/A]
list GPU 0: NVIDIA GH200 480GB (UUID: GPU-a)
list   MIG 3g.48gb     Device  0: (UUID: MIG-a1)
list   MIG 2g.24gb     Device  1: (UUID: MIG-a2)
`, "570.133.20", "NVIDIA GH200 480GB 0009:01:00.0 Enabled", []int{2}},
	} {
		got, err := parseSMI(c.text)
		if err != nil || got.DriverVersion != c.driver || len(got.GPUs) != len(c.slices) || !got.SlicesListed {
			t.Errorf("%s: %+v, %v", name, got, err)
			continue
		}
		var gpus []string
		for i, g := range got.GPUs {
			gpus = append(gpus, g.Name+" "+g.PCI+" "+g.MIG)
			if len(g.Slices) != c.slices[i] {
				t.Errorf("%s: GPU %d has slices %+v, want %d", name, i, g.Slices, c.slices[i])
			}
		}
		if strings.Join(gpus, ", ") != c.gpus {
			t.Errorf("%s: %q", name, gpus)
		}
	}
}

// Case 039: what the XML of driver 590 and of driver 340 says, as the query
// answers it: a whole sentence, or N/A, where a value was; fields that old
// drivers do not know are not asked for again.
func TestSentencesAreNoValuesCase039(t *testing.T) {
	v13, err := parseSMI("rc 0\nrow 0, GPU-12345678-aaaa-bbbb-cccc-0123456789ab, NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition, 00000000:61:00.0, 97887, 590.44.01, [N/A], [N/A], Requested functionality has been deprecated, Enabled, 12.0, [N/A]\n")
	if err != nil || len(v13.GPUs) != 1 || v13.DriverVersion != "590.44.01" {
		t.Fatalf("%+v, %v", v13, err)
	}
	if g := v13.GPUs[0]; g.Name != "NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition" || g.MemoryMiB != 97887 || g.MIG != "" || g.ECC != "" || g.Trouble != "" || g.Fabric != "" {
		t.Errorf("%+v", g)
	}
	v6, err := parseSMI("rc 0\nrow 0, GPU-00000000-aaaa-bbbb-cccc-dddddddddddd, GeForce 8800 GT, 0000:01:00.0, 511, 340.102\n")
	if err != nil || len(v6.GPUs) != 1 || v6.DriverVersion != "340.102" || v6.GPUs[0].MemoryMiB != 511 || v6.GPUs[0].MIG != "" {
		t.Errorf("%+v, %v", v6, err)
	}
}
