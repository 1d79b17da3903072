package smoke

import (
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Log is what a test pod printed, as far as it carries the run's mark.
type Log struct {
	// Begun and Ended: the script's first and last line were there.
	Begun, Ended bool
	// Devices are the GPU device nodes in the container.
	Devices []string
	// Program is the vectorAdd that was found, empty if none was.
	Program string
	// SMI is nvidia-smi's exit code, 127 when there is none; Unknown when it did not get that far.
	SMI int
	// GPUs are the GPUs that nvidia-smi listed, Slices the MIG devices.
	GPUs, Slices []GPU
	// Text are the lines of nvidia-smi that name no GPU: its error.
	Text []string
	// Runs are the runs of vectorAdd, in order.
	Runs []ProgramRun
	// smi is when nvidia-smi had answered, end when the script ended, by the node's
	// clock; zero where the log has no times.
	smi, end time.Time
	// Stray counts lines that look like the script's and carry another mark.
	Stray int
}

// ProgramRun is one run of vectorAdd on one GPU.
type ProgramRun struct {
	UUID   string
	Code   int
	Passed bool
	Output []string
}

// Units are what CUDA can choose among: the slices if there are any, else the GPUs.
func (l Log) Units() []GPU {
	if len(l.Slices) > 0 {
		return l.Slices
	}
	return l.GPUs
}

const prefix = "gpuctl-smoke "

// ParseLog reads a pod's log. Lines without the mark are not the script's and are
// passed over; nothing in them can make a test pass.
func ParseLog(text, mark string) Log {
	log := Log{SMI: Unknown}
	if mark == "" {
		return log
	}
	device := regexp.MustCompile(`^\s*(GPU|MIG)\s.*\(UUID: ((?:GPU|MIG)-[A-Za-z0-9/-]+)\)\s*$`)
	for _, line := range strings.Split(text, "\n") {
		at, line := stamped(line)
		rest, ours := strings.CutPrefix(strings.TrimSuffix(line, "\r"), prefix)
		if !ours {
			continue
		}
		word, rest, _ := strings.Cut(rest, " ")
		if word != mark {
			log.Stray++
			continue
		}
		verb, rest, _ := strings.Cut(rest, " ")
		log.take(verb, rest, device)
		switch verb {
		case "smi":
			log.smi = at
		case "end":
			log.end = at
		}
	}
	return log
}

// stamped cuts the time off a line that the kubelet put before it.
func stamped(line string) (time.Time, string) {
	word, rest, _ := strings.Cut(line, " ")
	at, err := time.Parse(time.RFC3339Nano, word)
	if err != nil {
		return time.Time{}, line
	}
	return at, rest
}

// Computing is how long vectorAdd ran on all GPUs together, 0 where the log does not tell.
func (l Log) Computing() time.Duration {
	if l.smi.IsZero() || l.end.Before(l.smi) {
		return 0
	}
	return l.end.Sub(l.smi)
}

func (l *Log) take(verb, rest string, device *regexp.Regexp) {
	switch verb {
	case "begin":
		l.Begun = true
	case "end":
		l.Ended = l.Begun
	case "device":
		l.Devices = append(l.Devices, rest)
	case "program":
		if rest != "none" {
			l.Program = rest
		}
	case "smi":
		if code, err := strconv.Atoi(rest); err == nil && code >= 0 {
			l.SMI = code
		}
	case "list":
		l.list(rest, device)
	case "run":
		l.run(strings.Fields(rest))
	case "out":
		uuid, text, _ := strings.Cut(rest, " ")
		if n := len(l.Runs); n > 0 && l.Runs[n-1].UUID == uuid {
			l.Runs[n-1].Output = append(l.Runs[n-1].Output, text)
		}
	}
}

func (l *Log) list(line string, device *regexp.Regexp) {
	m := device.FindStringSubmatch(line)
	if m == nil {
		if strings.TrimSpace(line) != "" {
			l.Text = append(l.Text, strings.TrimSpace(line))
		}
		return
	}
	name, _, _ := strings.Cut(line, " (UUID: ")
	if _, after, ok := strings.Cut(name, ": "); ok {
		name = after
	}
	gpu := GPU{UUID: m[2], Name: strings.TrimSpace(name)}
	if m[1] == "MIG" {
		l.Slices = append(l.Slices, gpu)
		return
	}
	l.GPUs = append(l.GPUs, gpu)
}

func (l *Log) run(fields []string) {
	if len(fields) != 3 {
		return
	}
	code, err := strconv.Atoi(fields[1])
	if err != nil {
		return
	}
	l.Runs = append(l.Runs, ProgramRun{UUID: fields[0], Code: code, Passed: code == 0 && fields[2] == "yes"})
}
