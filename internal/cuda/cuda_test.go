package cuda

import (
	"os"
	"strings"
	"testing"
)

func lines(t *testing.T, name string) []string {
	t.Helper()
	text, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(string(text)), "\n")
}

func node(driver string, cards ...GPU) Node { return Node{Driver: driver, GPUs: cards} }

var (
	v100  = GPU{"Tesla V100-SXM2-16GB", "7.0"}
	t4    = GPU{"Tesla T4", "7.5"}
	a100  = GPU{"NVIDIA A100-SXM4-80GB", "8.0"}
	l40s  = GPU{"NVIDIA L40S", "8.9"}
	r4090 = GPU{"NVIDIA GeForce RTX 4090", "8.9"}
	a6000 = GPU{"NVIDIA RTX A6000", "8.6"}
	h100  = GPU{"NVIDIA H100 80GB HBM3", "9.0"}
	b200  = GPU{"NVIDIA B200", "10.0"}
	r5090 = GPU{"NVIDIA GeForce RTX 5090", "12.0"}
	gb10  = GPU{"NVIDIA GB10", "12.1"}
	vgpu  = GPU{"NVIDIA A40-24C", "8.6"}
)

// Case 060 and its siblings: the test image asks for CUDA 12.8, the node's
// driver serves 12.4 (SyneRBI/PETRIC2#27). Images are configurations as public
// Dockerfiles and inspections have them, see testdata.
func TestDecideCase060AndSiblings(t *testing.T) {
	newer := OfConfig(lines(t, "060-require.txt"), nil)
	base := OfConfig(lines(t, "cuda-12.4.1-base.env"), nil)
	old := OfConfig(lines(t, "cuda-11.4.0-base.env"), nil)
	ngc := OfConfig(lines(t, "ngc-cuda-13.0.2.env"), nil)
	plain := func(cuda string) Image { return Image{CUDA: cuda} }
	compat := func(cuda, require string) Image {
		return OfConfig([]string{"CUDA_VERSION=" + cuda, "NVIDIA_REQUIRE_CUDA=" + require}, []string{"RUN apt-get install -y cuda-compat-13-0"})
	}
	for name, c := range map[string]struct {
		image  Image
		node   Node
		answer Answer
		code   string
		shows  string
	}{
		"060: GeForce, 12.8 on 12.4":                 {newer, node("550.90.07", r4090), Fails, CodeNeedsDriver, "CUDA 12.8 (driver 570.26 or later), and driver 550.90.07 serves CUDA 12.4"},
		"060: data centre on 535":                    {newer, node("535.183.01", a100), Unknown, CodeNotJudged, "not known whether"},
		"060: data centre on 545":                    {newer, node("545.23.08", a100), Fails, CodeNeedsDriver, "serves CUDA 12.3"},
		"060: data centre on 570":                    {newer, node("570.172.08", a100), Runs, "", "is met: CUDA 12.8"},
		"060: unchecked":                             {OfConfig(append(lines(t, "060-require.txt"), "CUDA_VERSION=12.8.0", "NVIDIA_DISABLE_REQUIRE=1"), nil), node("550.90.07", r4090), Runs, "", "minor-version compatibility"},
		"060: unchecked below the floor":             {OfConfig([]string{"CUDA_VERSION=13.0.0", "NVIDIA_DISABLE_REQUIRE=true"}, nil), node("550.90.07", r4090), Fails, CodeNeedsDriver, "CUDA 13 needs driver 580.65.06"},
		"060: CUDA 11 on sm_120":                     {plain("11.8.0"), node("580.95.05", r5090), Unknown, CodeBeforeGPU, "does not know compute capability 12.0"},
		"060: one of two cards":                      {plain("12.4.1"), node("580.95.05", h100, b200), Unknown, CodeBeforeGPU, "NVIDIA B200"},
		"every brand is listed for 535":              {base, node("535.183.01", a100), Runs, "", "minor-version compatibility: built with CUDA 12.4.1 (driver 550.54.15)"},
		"GeForce is listed too":                      {base, node("535.183.01", r4090), Runs, "", "minor-version"},
		"a branch nobody lists":                      {base, node("545.29.06", l40s), Fails, CodeNeedsDriver, "CUDA 12.4 (driver 550.54.14 or later)"},
		"a newer driver runs it all":                 {base, node("610.43.02", h100), Runs, "", "driver 610.43.02 serves CUDA 13.3"},
		"older CUDA, newest driver":                  {old, node("595.71.05", t4), Runs, "", "built with CUDA 11.4.0"},
		"CUDA 11.4 on 450, data centre":              {old, node("450.80.02", t4), Unknown, CodeNotJudged, "Tesla T4"},
		"CUDA 11.4 on 450, workstation":              {old, node("450.80.02", a6000), Fails, CodeNeedsDriver, "CUDA 11.4"},
		"minor-version compatibility":                {plain("12.8.1"), node("525.60.13", a100), Runs, "", "(driver 570.124.06), driver 525.60.13 serves CUDA 12.0"},
		"one below the floor of 12":                  {plain("12.0.0"), node("525.60.12", a100), Fails, CodeNeedsDriver, "CUDA 12 needs driver 525.60.13"},
		"one below the floor of 13":                  {plain("13.0.0"), node("580.65.05", h100), Fails, CodeNeedsDriver, "580.65.06"},
		"at the floor of 13":                         {plain("13.2.1"), node("580.65.06", h100), Runs, "", "minor-version"},
		"one below the floor of 11":                  {plain("11.0.3"), node("450.51.06", a100), Fails, CodeNeedsDriver, "CUDA 11 needs driver 450.80.02"},
		"CUDA 13 dropped Volta":                      {plain("13.0.1"), node("580.95.05", v100), Fails, CodeDropsGPU, "CUDA 13 dropped compute capability 7.0"},
		"CUDA 13 keeps Turing":                       {plain("13.0.1"), node("580.95.05", t4), Runs, "", "built with CUDA 13.0.1"},
		"NGC 13.0 asks for little":                   {ngc, node("535.183.01", h100), Unknown, CodeNotJudged, "for which drivers it does not say"},
		"NGC 13.0 on GeForce":                        {ngc, node("550.90.07", r4090), Fails, CodeNeedsDriver, "CUDA 13 needs driver 580.65.06"},
		"NGC 13.0 on a workstation card":             {ngc, node("550.90.07", a6000), Unknown, CodeNotJudged, "NVIDIA RTX A6000 is not known"},
		"NGC 13.0 on an unknown kind":                {ngc, node("550.90.07", gb10), Unknown, CodeNotJudged, "NVIDIA GB10"},
		"NGC 13.0 with its driver":                   {ngc, node("580.95.05", b200), Runs, "", "built with CUDA 13.0.2"},
		"forward compatibility, said so":             {compat("13.0.0", "cuda>=13.0 brand=tesla,driver>=535,driver<536 brand=nvidia,driver>=535,driver<536"), node("535.183.01", h100), Runs, "", "by forward compatibility"},
		"forward compatibility, not GeForce":         {compat("13.0.0", "cuda>=13.0 brand=geforce,driver>=535,driver<536 brand=geforcertx,driver>=535,driver<536"), node("535.183.01", r4090), Fails, CodeNeedsDriver, "CUDA 13 needs"},
		"no compat, no forward":                      {plain("13.0.0"), node("535.183.01", h100), Fails, CodeNeedsDriver, "CUDA 13 needs"},
		"arch is asked for":                          {OfConfig([]string{"CUDA_VERSION=12.6.0", "NVIDIA_REQUIRE_ARCH=arch>=9.0"}, nil), node("580.95.05", a100), Fails, CodeNeedsDriver, "it asks for arch>=9.0"},
		"two requirements, one unmet":                {OfConfig([]string{"NVIDIA_REQUIRE_CUDA=cuda>=12.0", "NVIDIA_REQUIRE_DRIVER=driver>=600"}, nil), node("580.95.05", a100), Fails, CodeNeedsDriver, "driver 580.95.05 serves CUDA 13.0"},
		"a vGPU may be of any brand":                 {newer, node("550.90.07", vgpu), Unknown, CodeNotJudged, "A40-24C"},
		"GB10 with a recent driver":                  {plain("13.0.2"), node("580.95.05", gb10), Runs, "", "built with CUDA 13.0.2"},
		"compute capability not known":               {plain("13.0.2"), node("580.95.05", GPU{Name: "NVIDIA X"}), Runs, "", ""},
		"the image says nothing":                     {OfConfig([]string{"PATH=/bin"}, nil), node("580.95.05", h100), Unknown, CodeNotJudged, "says nothing of CUDA"},
		"it cannot be read":                          {OfConfig([]string{"CUDA_VERSION=12.4", "NVIDIA_REQUIRE_CUDA=cuda"}, nil), node("580.95.05", h100), Unknown, CodeNotJudged, "compares nothing"},
		"no driver, and a card that CUDA 13 dropped": {plain("13.0.1"), node("", v100), Fails, CodeDropsGPU, "compute capability 7.0"},
		"no driver":                                  {plain("12.4.1"), node("", h100), Unknown, CodeNotJudged, "no driver is loaded"},
		"no GPU seen":                                {plain("12.4.1"), node("580.95.05"), Unknown, CodeNotJudged, "not seen"},
		"a CUDA of the future":                       {plain("14.0.0"), node("999.1", h100), Unknown, CodeNotJudged, "in no table"},
	} {
		t.Run(name, func(t *testing.T) {
			v := Decide(c.image, c.node)
			if v.Answer != c.answer || v.Code != c.code || !strings.Contains(v.Reason, c.shows) {
				t.Errorf("%+v, want %s %s with %q", v, c.answer, c.code, c.shows)
			}
		})
	}
}

// The banner of case 060 says what its driver serves; those of the cases 034,
// 037 and 039 and a vLLM user's 566.07 say it of theirs.
func TestServesWhatBannersSay(t *testing.T) {
	fields := strings.Fields(lines(t, "060-banner.txt")[0])
	if got := Serves(fields[2]); got != fields[len(fields)-2] {
		t.Errorf("driver %s serves %s, its banner says %s", fields[2], got, fields[len(fields)-2])
	}
	for driver, want := range map[string]string{
		"525.85.12": "12.0", "535.129.03": "12.2", "550.54.14": "12.4", "570.133.20": "12.8", "590.44.01": "13.1", "580.95.05": "13.0",
		"575.57.08": "12.9", "595.45.04": "13.2", "610.43.02": "13.3", "616.00": "13.4", "340.102": "", "450.80.02": "11.0", "470.256.02": "11.4",
	} {
		if got := Serves(driver); got != want {
			t.Errorf("driver %s serves %q, want %q", driver, got, want)
		}
	}
}

func TestTheTableIsInOrder(t *testing.T) {
	all := Releases()
	for i := 1; i < len(all); i++ {
		if Compare(all[i-1].CUDA, all[i].CUDA) <= 0 || Compare(all[i-1].Driver, all[i].Driver) < 0 {
			t.Errorf("%v stands before %v", all[i-1], all[i])
		}
	}
	if d := firstDriver("12.7"); d != "570.26" {
		t.Errorf("first driver for 12.7, which never was: %s", d)
	}
	if d := minorFloor("12.8.0.038"); d != "570.26" {
		t.Errorf("NGC's 12.8.0.038: %q", d)
	}
	if d := minorFloor("12.2.140"); d != "535.54.03" {
		t.Errorf("an update that is not in the table: %q", d)
	}
}

func TestOfConfig(t *testing.T) {
	for text, want := range map[string]string{
		"CUDA_VERSION=12.8.0.038":           "12.8.0",
		"NV_CUDA_CUDART_VERSION=12.4.127-1": "12.4",
		"NV_CUDA_LIB_VERSION=11.2.2-1":      "11.2.2",
		"CUDA_VERSION=latest":               "",
		"NVIDIA_REQUIRE_CUDA=CUDA>=12.3":    "", // the toolkit knows no such property and lets it pass
	} {
		i := OfConfig([]string{text}, nil)
		if i.CUDA != want || i.Malformed != "" || len(i.Require) > 0 {
			t.Errorf("%s: %+v, want CUDA %q", text, i, want)
		}
	}
}

func FuzzParseRequirement(f *testing.F) {
	for _, name := range []string{"060-require.txt", "cuda-12.4.1-base.env", "ngc-cuda-13.0.2.env"} {
		text, err := os.ReadFile("testdata/" + name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(text))
	}
	for _, s := range []string{"cuda>=12.8 brand=tesla,driver>=535,driver<536", "", " ,", "cuda", "cuda!12", "arch!=7.5", "brand=", "driver>=x", "<>=", "CUDA>=1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r, err := ParseRequirement(text)
		if err != nil {
			return
		}
		again, err := ParseRequirement(r.String())
		if err != nil || again.String() != r.String() {
			t.Errorf("%q is read as %q and that as %q, %v", text, r, again, err)
		}
		for _, all := range r {
			if len(all) == 0 {
				t.Errorf("%q has an empty alternative", text)
			}
		}
		// What is unknown never makes a certain yes or no out of thin air.
		if len(r) > 0 && r.holds(facts{}) != maybe {
			t.Errorf("%q is decided without a fact", text)
		}
	})
}
