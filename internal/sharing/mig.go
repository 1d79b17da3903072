package sharing

import (
	"fmt"
	"sort"
	"strconv"
	"strings"
)

// Profile is one kind of MIG slice and how many of it alone fit on a card.
type Profile struct {
	Name string
	Most int
}

// migTable is one kind of card: its PCI device ids and its profiles.
type migTable struct {
	card     string
	devices  string
	profiles string
	// driver is the lowest that has MIG on the card (MIG user guide, deployment
	// considerations); the guide's older editions exchange the rows of A100 and H100.
	driver string
}

// migTables are the profiles of the MIG configuration that the GPU Operator 26.7
// ships. Names on Grace systems depend on the driver; "nvidia-smi mig -lgip" on
// the node has the last word.
func migTables() []migTable {
	return []migTable{
		{"A30 24GB", "20b7", "1g.6gb*4 1g.6gb+me*1 2g.12gb*2 2g.12gb+me*1 4g.24gb*1", "460.73.01"},
		{"A100 40GB", "20b0 20b1 20f1 20f6", "1g.5gb*7 1g.5gb+me*1 1g.10gb*4 2g.10gb*3 3g.20gb*2 4g.20gb*1 7g.40gb*1", "450.80.02"},
		{"A100 80GB", "20b2 20b5 20f3 20f5", "1g.10gb*7 1g.10gb+me*1 1g.20gb*4 2g.20gb*3 3g.40gb*2 4g.40gb*1 7g.80gb*1", "450.80.02"},
		{"H100 80GB", "2330 2331 2322 2324", "1g.10gb*7 1g.10gb+me*1 1g.20gb*4 2g.20gb*3 3g.40gb*2 4g.40gb*1 7g.80gb*1", "525.85.12"},
		{"H100 NVL 94GB", "2321 233a", "1g.12gb*7 1g.12gb+me*1 1g.24gb*4 2g.24gb*3 3g.47gb*2 4g.47gb*1 7g.94gb*1", "525.85.12"},
		{"H20 96GB", "2329", "1g.12gb*7 1g.12gb+me*1 1g.24gb*4 2g.24gb*3 3g.48gb*2 4g.48gb*1 7g.96gb*1", "535.161.07"},
		{"GH200 96GB", "2342", "1g.12gb*7 1g.12gb+me*1 1g.24gb*4 2g.24gb*3 3g.48gb*2 4g.48gb*1 7g.96gb*1", ""},
		{"H200 141GB", "2335 233b", "1g.18gb*7 1g.18gb+me*1 1g.35gb*4 2g.35gb*3 3g.71gb*2 4g.71gb*1 7g.141gb*1", "550.90.07"},
		{"GH200 144GB", "2348", "1g.18gb*7 1g.18gb+me*1 1g.36gb*4 2g.36gb*3 3g.72gb*2 4g.72gb*1 7g.144gb*1", ""},
		{"B200 180GB", "2901", "1g.23gb*7 1g.23gb+me*1 1g.45gb*4 2g.45gb*3 3g.90gb*2 4g.90gb*1 7g.180gb*1", "570.133.20"},
		{"B300", "3182", "1g.34gb*7 1g.34gb+me*1 1g.67gb*4 2g.67gb*3 3g.135gb*2 4g.135gb*1 7g.269gb*1", "580.82.07"},
		{"GB300", "31c2", "1g.35gb*7 1g.35gb+me*1 1g.70gb*4 2g.70gb*3 3g.139gb*2 4g.139gb*1 7g.278gb*1", ""},
		{"RTX PRO 6000 96GB", "2bb5", "1g.24gb*4 1g.24gb+gfx*4 1g.24gb-me*4 1g.24gb+me*1 1g.24gb+me.all*1 2g.48gb*2 2g.48gb+gfx*2 2g.48gb-me*2 2g.48gb+me.all*1 4g.96gb*1 4g.96gb+gfx*1", "575.51.03"},
	}
}

// Profiles are the MIG slices of a card by its PCI device id; none for a card
// that has no MIG or is not recorded.
func Profiles(device string) []Profile {
	for _, t := range migTables() {
		if device != "" && strings.Contains(" "+t.devices+" ", " "+strings.ToLower(device)+" ") {
			return t.list()
		}
	}
	return nil
}

func (t migTable) list() []Profile {
	var out []Profile
	for _, entry := range strings.Fields(t.profiles) {
		name, most, _ := strings.Cut(entry, "*")
		out = append(out, Profile{name, int(most[0] - '0')})
	}
	return out
}

// refuseMIG lists what NVIDIA rejects about cutting the cards of a node into
// the slices of a layout.
func (s Spec) refuseMIG(cards []Card) []string {
	var why []string
	models := map[string]bool{}
	for _, c := range cards {
		models[c.Model] = true
		have := Profiles(c.Device)
		slices, fits := layout(s.Layout, have)
		if len(have) == 0 {
			why = append(why, c.Model+" has no MIG, or none that is recorded")
			continue
		}
		if !fits {
			slices = Slices{{s.Layout, 1}}
		}
		lacking := false
		for _, p := range slices {
			if !has(have, p.Profile) {
				lacking = true
				why = append(why, fmt.Sprintf("%s has no profile %s; it has %s", c.Model, p.Profile, names(have)))
			}
		}
		if text := Overfull(slices, have); text != "" && !lacking {
			why = append(why, c.Model+": "+text)
		}
		if floor := minDriver(c.Device); floor != "" && older(c.Driver, floor) {
			why = append(why, fmt.Sprintf("%s has MIG from driver %s on; driver %s runs", c.Model, floor, c.Driver))
		}
	}
	if len(models) > 1 {
		var mixed []string
		for m := range models {
			mixed = append(mixed, m)
		}
		sort.Strings(mixed)
		why = append(why, "the machine mixes "+strings.Join(mixed, " and ")+": profiles differ by card, make a group of each")
	}
	sort.Strings(why)
	return compact(why)
}

func names(profiles []Profile) string {
	var all []string
	for _, p := range profiles {
		all = append(all, p.Name)
	}
	return strings.Join(all, ", ")
}

func has(profiles []Profile, name string) bool {
	for _, p := range profiles {
		if p.Name == name {
			return true
		}
	}
	return false
}

// minDriver is the lowest driver that has MIG on a card, "" where none is recorded.
func minDriver(device string) string {
	for _, t := range migTables() {
		if device != "" && strings.Contains(" "+t.devices+" ", " "+strings.ToLower(device)+" ") {
			return t.driver
		}
	}
	return ""
}

// older compares dotted versions; a version that is not known is not older.
func older(have, floor string) bool {
	h, f := strings.Split(have, "."), strings.Split(floor, ".")
	for i := range f {
		if i >= len(h) {
			return false
		}
		a, err1 := strconv.Atoi(h[i])
		b, err2 := strconv.Atoi(f[i])
		if err1 != nil || err2 != nil {
			return false
		}
		if a != b {
			return a < b
		}
	}
	return false
}

// ModeNeedsReset says whether a card takes a change of its MIG mode only by a
// reset, which a passed-through GPU often cannot have but by a reboot: those of
// compute capability 8.0, A100 and A30 (MIG user guide; NVIDIA/gpu-operator#1606).
func ModeNeedsReset(compute string) bool { return compute == "8.0" }
