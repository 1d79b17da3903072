package smi

import (
	"fmt"
	"strconv"
	"strings"
)

func (s session) list(picked []device) {
	for _, d := range picked {
		fmt.Fprintf(s.Stdout, "GPU %d: %s (UUID: %s)\n", d.index, d.Model, d.UUID)
		for i, slice := range Slices(s.Root, d.GPU, d.minor) {
			fmt.Fprintf(s.Stdout, "  MIG %-12s Device %2d: (UUID: %s)\n", slice.Profile, i, slice.UUID)
		}
	}
}

const (
	full = "+-----------------------------------------------------------------------------------------+"
	rule = "+-----------------------------------------+------------------------+----------------------+"
)

func (s session) table(picked []device) {
	p := func(format string, a ...any) { fmt.Fprintf(s.Stdout, format+"\n", a...) }
	p("%-31s", s.Now().Format("Mon Jan _2 15:04:05 2006"))
	p(full)
	p("%s", s.banner())
	p(rule)
	p("| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |")
	p("| Fan  Temp   Perf          Pwr:Usage/Cap |           Memory-Usage | GPU-Util  Compute M. |")
	p("|                                         |                        |               MIG M. |")
	p("|=========================================+========================+======================|")
	for _, d := range picked {
		name := d.Model
		if len(name) > 25 {
			name = name[:22] + "..."
		}
		mig := "N/A"
		if d.MIG != nil {
			mig = d.MIG.Current
		}
		p("| %3d  %-25s      On  |   %-16s Off | %20s |", d.index, name, d.busID(), "0")
		p("| N/A  %3dC    P0             48W /  350W | %7dMiB / %6dMiB | %6d%% %12s |", 31, usedMiB, d.MemoryMiB, 0, "Default")
		p("|                                         |                        | %20s |", mig)
		p(rule)
	}
	p("")
	p(full)
	p("| Processes:                                                                              |")
	p("|  GPU   GI   CI              PID   Type   Process name                        GPU Memory |")
	p("|        ID   ID                                                               Usage      |")
	p("|=========================================================================================|")
	p("|  No running processes found                                                             |")
	p(full)
}

// banner changed its words with driver 610.
func (s session) banner() string {
	major, _, _ := strings.Cut(s.Driver, ".")
	if n, err := strconv.Atoi(major); err == nil && n >= 610 {
		return fmt.Sprintf("| NVIDIA-SMI %-23sKMD Version: %-14sCUDA UMD Version: %-9s|", s.Driver, s.Driver, s.CUDA)
	}
	return fmt.Sprintf("| NVIDIA-SMI %-23sDriver Version: %-15sCUDA Version: %-9s|", s.Driver, s.Driver, s.CUDA)
}

// full prints the parts of nvidia-smi -q that tools read.
func (s session) full(picked []device) {
	p := func(indent int, key, value string) {
		fmt.Fprintf(s.Stdout, "%s%-*s : %s\n", strings.Repeat(" ", indent), 50-indent, key, value)
	}
	head := func(indent int, key string) { fmt.Fprintf(s.Stdout, "%s%s\n", strings.Repeat(" ", indent), key) }
	fmt.Fprint(s.Stdout, "\n==============NVSMI LOG==============\n\n")
	p(0, "Timestamp", s.Now().Format("Mon Jan _2 15:04:05 2006"))
	p(0, "Driver Version", s.Driver)
	p(0, "CUDA Version", s.CUDA)
	fmt.Fprintln(s.Stdout)
	p(0, "Attached GPUs", strconv.Itoa(len(s.devices)))
	for _, d := range picked {
		head(0, "GPU "+d.busID())
		p(4, "Product Name", d.Model)
		p(4, "Persistence Mode", "Enabled")
		head(4, "MIG Mode")
		current, pending := "N/A", "N/A"
		if d.MIG != nil {
			current, pending = d.MIG.Current, d.MIG.Pending
		}
		p(8, "Current", current)
		p(8, "Pending", pending)
		p(4, "GPU UUID", d.UUID)
		p(4, "Minor Number", strconv.Itoa(d.minor))
		head(4, "PCI")
		p(8, "Bus Id", d.busID())
		p(8, "Device Id", d.pciDeviceID())
		head(4, "FB Memory Usage")
		p(8, "Total", strconv.Itoa(d.MemoryMiB)+" MiB")
		p(8, "Reserved", strconv.Itoa(reservedMiB)+" MiB")
		p(8, "Used", strconv.Itoa(usedMiB)+" MiB")
		p(8, "Free", strconv.Itoa(d.MemoryMiB-reservedMiB-usedMiB)+" MiB")
		p(4, "Compute Mode", "Default")
		head(4, "Fabric")
		p(8, "State", s.fabric("N/A"))
		p(8, "Status", s.fabricStatus("N/A"))
		p(4, "Processes", "None")
	}
	fmt.Fprintln(s.Stdout)
}

// topo prints the matrix of nvidia-smi topo -m for GPUs on one host bridge.
func (s session) topo(picked []device) {
	fmt.Fprint(s.Stdout, "\t")
	for _, d := range picked {
		fmt.Fprintf(s.Stdout, "GPU%d\t", d.index)
	}
	fmt.Fprint(s.Stdout, "CPU Affinity\tNUMA Affinity\tGPU NUMA ID\n")
	for _, a := range picked {
		fmt.Fprintf(s.Stdout, "GPU%d\t", a.index)
		for _, b := range picked {
			if a.index == b.index {
				fmt.Fprint(s.Stdout, " X \t")
			} else {
				fmt.Fprint(s.Stdout, "PHB\t")
			}
		}
		fmt.Fprint(s.Stdout, "0-1\t0\t\tN/A\n")
	}
}
