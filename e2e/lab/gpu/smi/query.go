package smi

import (
	"fmt"
	"strconv"
	"strings"
)

// field is one column of --query-gpu: its header and, for numbers, its unit.
type field struct {
	head, unit string
	value      func(s session, d device) string
}

func constant(head, unit, value string) field {
	return field{head, unit, func(session, device) string { return value }}
}

func perDevice(head, unit string, value func(d device) string) field {
	return field{head, unit, func(_ session, d device) string { return value(d) }}
}

func migMode(pick func(d device) string) func(d device) string {
	return func(d device) string {
		if d.MIG == nil {
			return "[N/A]"
		}
		return pick(d)
	}
}

// fields are the columns that are simulated, by the name one asks for.
func fields() map[string]field {
	f := map[string]field{
		"index":             perDevice("index", "", func(d device) string { return strconv.Itoa(d.index) }),
		"name":              perDevice("name", "", func(d device) string { return d.Model }),
		"uuid":              perDevice("uuid", "", func(d device) string { return d.UUID }),
		"pci.bus_id":        perDevice("pci.bus_id", "", device.busID),
		"pci.domain":        perDevice("pci.domain", "", func(d device) string { return "0x" + d.Bus[:4] }),
		"pci.bus":           perDevice("pci.bus", "", func(d device) string { return "0x" + strings.ToUpper(d.Bus[5:7]) }),
		"pci.device":        perDevice("pci.device", "", func(d device) string { return "0x" + strings.ToUpper(d.Bus[8:10]) }),
		"pci.device_id":     perDevice("pci.device_id", "", device.pciDeviceID),
		"pci.sub_device_id": perDevice("pci.sub_device_id", "", device.pciDeviceID),
		"driver_version":    {"driver_version", "", func(s session, _ device) string { return s.Driver }},
		"count":             {"count", "", func(s session, _ device) string { return strconv.Itoa(len(s.devices)) }},
		"memory.total":      perDevice("memory.total", "MiB", func(d device) string { return strconv.Itoa(d.MemoryMiB) }),
		"memory.free":       perDevice("memory.free", "MiB", func(d device) string { return strconv.Itoa(d.MemoryMiB - reservedMiB - usedMiB) }),
		"memory.used":       constant("memory.used", "MiB", strconv.Itoa(usedMiB)),
		"memory.reserved":   constant("memory.reserved", "MiB", strconv.Itoa(reservedMiB)),
		"compute_cap":       perDevice("compute_cap", "", func(d device) string { return d.ComputeCapability }),
		"mig.mode.current":  perDevice("mig.mode.current", "", migMode(func(d device) string { return d.MIG.Current })),
		"mig.mode.pending":  perDevice("mig.mode.pending", "", migMode(func(d device) string { return d.MIG.Pending })),
		"serial":            perDevice("serial", "", func(d device) string { return strconv.Itoa(1650522000000 + d.minor) }),
		"fabric.state":      {"fabric.state", "", func(s session, _ device) string { return s.fabric("[N/A]") }},
		"fabric.status":     {"fabric.status", "", func(s session, _ device) string { return s.fabricStatus("[N/A]") }},
		"timestamp": {"timestamp", "", func(s session, _ device) string {
			return s.Now().Format("2006/01/02 15:04:05.000")
		}},
	}
	for name, c := range map[string]field{
		"utilization.gpu": {unit: "%"}, "utilization.memory": {unit: "%"},
		"ecc.errors.uncorrected.volatile.total": {}, "ecc.errors.corrected.volatile.total": {},
		"ecc.errors.uncorrected.aggregate.total": {}, "ecc.errors.corrected.aggregate.total": {},
		"remapped_rows.uncorrectable": {}, "remapped_rows.correctable": {},
	} {
		f[name] = constant(name, c.unit, "0")
	}
	for name, value := range map[string]string{
		"temperature.gpu": "31", "pstate": "P0", "persistence_mode": "Enabled", "compute_mode": "Default",
		"ecc.mode.current": "Enabled", "ecc.mode.pending": "Enabled", "remapped_rows.pending": "No",
		"remapped_rows.failure": "No", "retired_pages.pending": "[N/A]", "display_mode": "Disabled",
		"display_active": "Disabled", "vbios_version": "96.00.89.00.01", "addressing_mode": "HMM",
		"gpu_recovery_action": "None", "clocks_throttle_reasons.active": "0x0000000000000001",
		"clocks_event_reasons.active": "0x0000000000000001", "pcie.link.gen.current": "5", "pcie.link.width.current": "16",
		"accounting.mode": "Disabled", "mig.device_count": "0",
	} {
		f[name] = constant(name, "", value)
	}
	f["power.draw"] = constant("power.draw", "W", "48.20")
	f["power.limit"] = constant("power.limit", "W", "350.00")
	f["clocks.max.sm"] = constant("clocks.max.sm", "MHz", "1755")
	f["clocks.current.sm"] = constant("clocks.current.sm", "MHz", "345")
	for alias, name := range map[string]string{"gpu_name": "name", "gpu_uuid": "uuid", "gpu_bus_id": "pci.bus_id",
		"gpu_serial": "serial", "clocks.sm": "clocks.current.sm"} {
		f[alias] = f[name]
	}
	return f
}

const (
	reservedMiB = 546
	usedMiB     = 1
)

func (d device) pciDeviceID() string {
	vendor, id, _ := strings.Cut(strings.ToUpper(d.PCI), ":")
	return "0x" + id + vendor
}

func (s session) fabric(none string) string {
	switch {
	case s.Faults.Fabric != "":
		return s.Faults.Fabric
	case s.NVSwitches > 0:
		return "Completed"
	}
	return none
}

func (s session) fabricStatus(none string) string {
	if s.fabric("") == "Completed" {
		return "Success"
	}
	return none
}

func (s session) queryGPU(picked []device, o options) int {
	known := fields()
	var columns []field
	for _, name := range strings.Split(o.queryGPU, ",") {
		name = strings.TrimSpace(name)
		f, ok := known[name]
		if !ok {
			fmt.Fprintf(s.Stdout, "Field %q is not a valid field to query.\n\n", name)
			return exitInvalid
		}
		columns = append(columns, f)
	}
	if !o.noHeader {
		heads := make([]string, len(columns))
		for i, c := range columns {
			heads[i] = c.head
			if c.unit != "" {
				heads[i] += " [" + c.unit + "]"
			}
		}
		fmt.Fprintln(s.Stdout, strings.Join(heads, ", "))
	}
	for _, d := range picked {
		row := make([]string, len(columns))
		for i, c := range columns {
			row[i] = c.value(s, d)
			if c.unit != "" && !o.noUnits {
				row[i] += " " + c.unit
			}
		}
		fmt.Fprintln(s.Stdout, strings.Join(row, ", "))
	}
	return 0
}

// queryApps: nothing ever computes on a simulated GPU, so only the header.
func (s session) queryApps(o options) {
	if o.noHeader {
		return
	}
	heads := strings.Split(o.queryApps, ",")
	for i, h := range heads {
		if heads[i] = strings.TrimSpace(h); heads[i] == "used_memory" || heads[i] == "used_gpu_memory" {
			heads[i] = "used_gpu_memory [MiB]"
		}
	}
	fmt.Fprintln(s.Stdout, strings.Join(heads, ", "))
}
