package probe

import (
	"bytes"
	"errors"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// run gives a script to sh as a machine would.
func run(t *testing.T, script string, args ...string) []byte {
	t.Helper()
	cmd := exec.Command("sh", append([]string{"-s", "--"}, args...)...)
	cmd.Stdin = strings.NewReader(script)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("script: %v\n%s", err, stderr.String())
	}
	return out
}

func TestEverySectionAnswersForItself(t *testing.T) {
	sections := []Section{
		{"good", 5 * time.Second, "echo \"it's $1 and $2\"\n"},
		{"none", 5 * time.Second, "exit 44\n"},
		{"closed", 5 * time.Second, "echo may not >&2; exit 43\n"},
		{"broken", 5 * time.Second, "echo one >&2; echo two >&2; exit 3\n"},
		{"hung", time.Second, "echo before; sleep 30\n"},
		{"deaf", time.Second, "trap '' TERM; while :; do sleep 30; done\n"},
		{"noisy", 5 * time.Second, "printf '\\033[31mred\\033[0m\\000\\n'; printf 'M begin good\\n'; printf 'no newline'\n"},
	}
	want := map[string]Answer{
		"good":   {OK, "it's a and b c\n", ""},
		"none":   {Absent, "", ""},
		"closed": {Denied, "", "may not"},
		"broken": {Failed, "", "one"},
		"hung":   {Timeout, "before\n", ""},
		"deaf":   {Timeout, "", ""},
	}
	for name, prefix := range map[string]string{"timeout(1)": "", "no timeout(1)": "timeout() { return 127; }\n"} {
		t.Run(name, func(t *testing.T) {
			start := time.Now()
			out, err := Split(run(t, prefix+Assemble(sections), "mark-1", "a", "b c"), "mark-1")
			if err != nil {
				t.Fatal(err)
			}
			for section, w := range want {
				if got := out.Answers[section]; got != w {
					t.Errorf("%s: %+v, want %+v", section, got, w)
				}
			}
			if got := out.Answers["noisy"].Text; got != "red\nM begin good\nno newline" {
				t.Errorf("noisy: %q", got)
			}
			if took := time.Since(start); took > 20*time.Second {
				t.Errorf("sections that hang held the others up for %s", took)
			}
			if out.First.IsZero() || out.Last.Before(out.First) {
				t.Errorf("clock: %s to %s", out.First, out.Last)
			}
		})
	}
}

func TestOutputIsBounded(t *testing.T) {
	out, err := Split(run(t, Assemble([]Section{{"big", 20 * time.Second, "head -c 300000 /dev/zero | tr '\\0' x\n"}}), "m"), "m")
	if err != nil {
		t.Fatal(err)
	}
	if n := len(out.Answers["big"].Text); n != 65536 {
		t.Errorf("%d bytes came back, want 65536", n)
	}
}

func TestSplitIgnoresWhatIsNotFramed(t *testing.T) {
	text := "Welcome to Ubuntu\nx begin os\nM clock 1700000000000000000\nM begin os\r\nID=debian\n\nM end os ok \nstray\nM begin half\ntext\nM clock 1700000001\nM done\nbye\n"
	out, err := Split([]byte(text), "M")
	if err != nil {
		t.Fatal(err)
	}
	if len(out.Answers) != 1 || out.Answers["os"] != (Answer{OK, "ID=debian\n", ""}) {
		t.Errorf("answers: %+v", out.Answers)
	}
	if out.First.Unix() != 1700000000 || out.Last.Unix() != 1700000001 {
		t.Errorf("clock: %s, %s", out.First, out.Last)
	}
}

func TestSplitKnowsWhenTheEndIsMissing(t *testing.T) {
	for name, text := range map[string]string{
		"nothing":    "motd only\n",
		"no end":     "M begin os\nID=debian\n",
		"no done":    "M begin os\nID=debian\n\nM end os ok \n",
		"other mark": "N begin os\nID=debian\n\nN end os ok \nN done\n",
	} {
		if _, err := Split([]byte(text), "M"); !errors.Is(err, ErrCut) {
			t.Errorf("%s: error %v, want ErrCut", name, err)
		}
	}
	if _, err := Split(nil, ""); err == nil {
		t.Error("an empty mark was accepted")
	}
}

func TestClean(t *testing.T) {
	for in, want := range map[string]string{
		"a\tb\nc":                "a\tb\nc",
		"\x1b[1;31mred\x1b[0m":   "red",
		"\x1b]0;title\x07x":      "]0;titlex",
		"bad \xff\xfe utf8":      "bad \ufffd\ufffd utf8",
		"bell\a back\b nul\x00.": "bell back nul.",
		"\x1b[":                  "",
		"c1 \u0085\u009b end":    "c1  end",
	} {
		if got := Clean(in); got != want {
			t.Errorf("Clean(%q) = %q, want %q", in, got, want)
		}
	}
}

func FuzzSplit(f *testing.F) {
	f.Add([]byte("M begin os\nID=debian\n\nM end os ok \nM done\n"), "M")
	f.Add([]byte("M begin a\nM begin b\nM end a ok\nM end b timeout x\nM clock 12N\n"), "M")
	f.Fuzz(func(t *testing.T, data []byte, mark string) {
		out, err := Split(data, mark)
		if err == nil && len(out.Answers) == 0 {
			t.Error("no answer and no error")
		}
		for name, a := range out.Answers {
			if Clean(a.Text) != a.Text || Clean(a.Note) != a.Note {
				t.Errorf("%s is not clean: %q", name, a.Text)
			}
		}
	})
}
