package k3s

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/gpuctl/gpuctl/internal/diag"
)

// hopeless are failures that do not heal while k3s goes on trying; healing are
// those that do when the other side comes up, given time.
func hopeless() []diag.Code {
	return []diag.Code{
		"node-password-rejected", "token-ca-mismatch", "token-refused", "k3s-unknown-key", "k3s-config-invalid",
		"etcd-duplicate-name", "etcd-not-member", "server-options-differ", "datastore-other-token",
		"datastore-older-than-disk", "default-runtime-missing", "containerd-config-broken", "snapshotter-unsupported",
		"cgroup-missing", "cgroup-v1-refused", "node-labels-refused", "interface-missing", "address-families",
	}
}

func healing() []diag.Code {
	return []diag.Code{"server-unreachable", "clock-wrong", "etcd-join-failed"}
}

// pattern is an extended regular expression of all fragments of the codes.
func pattern(codes []diag.Code) string {
	var parts []string
	for _, code := range codes {
		p, _ := diag.Lookup(code)
		for _, m := range p.Match {
			parts = append(parts, regexp.QuoteMeta(m))
		}
	}
	return strings.Join(parts, "|")
}

// StartError says that k3s did not come up. Its code is an entry of the failure catalogue.
type StartError struct {
	Unit string
	Code diag.Code
	// Reason is the last log line that explains it, without its time and level.
	Reason string
	// Journal is the end of the unit's log.
	Journal []string
}

func (e *StartError) Error() string {
	return fmt.Sprintf("starting %s: %s: %s", e.Unit, e.Code, e.Reason)
}

// DiagCode implements diag.Coded.
func (e *StartError) DiagCode() diag.Code { return e.Code }

// Classify finds the last log line that a failure of the catalogue explains.
// Without one the code is empty and the reason is the last line that is an
// error, else the last line.
func Classify(journal []string) (diag.Code, string) {
	var known []diag.Problem
	for _, code := range slices.Concat(hopeless(), healing(), []diag.Code{"port-in-use", "certificates-expired", "registries-wrong-place"}) {
		p, _ := diag.Lookup(code)
		known = append(known, p)
	}
	reason := ""
	for i := len(journal) - 1; i >= 0; i-- {
		line := strings.ToLower(journal[i])
		for _, p := range known {
			for _, m := range p.Match {
				if strings.Contains(line, m) {
					return p.Code, Message(journal[i])
				}
			}
		}
		if reason == "" && (strings.Contains(line, "level=fatal") || strings.Contains(line, "level=error") || strings.Contains(line, "waiting ")) {
			reason = Message(journal[i])
		}
	}
	if reason == "" && len(journal) > 0 {
		reason = Message(journal[len(journal)-1])
	}
	return "", reason
}

// Message returns the msg of a log line of k3s (logrus text), any other line as it is.
func Message(line string) string {
	_, rest, ok := strings.Cut(line, ` msg="`)
	if !ok {
		_, rest, ok = strings.Cut(line, ` msg=`)
		if !ok {
			return strings.TrimSpace(line)
		}
		word, _, _ := strings.Cut(rest, " ")
		return word
	}
	var b strings.Builder
	for i := 0; i < len(rest); i++ {
		switch {
		case rest[i] == '\\' && i+1 < len(rest):
			i++
			if rest[i] == 'n' {
				b.WriteByte(' ')
			} else {
				b.WriteByte(rest[i])
			}
		case rest[i] == '"':
			return strings.TrimSpace(b.String())
		default:
			b.WriteByte(rest[i])
		}
	}
	return strings.TrimSpace(b.String())
}

// Codes returns every code of the failure catalogue this package raises.
func Codes() []diag.Code {
	return slices.Concat(hopeless(), healing(), []diag.Code{
		"port-in-use", "certificates-expired", "registries-wrong-place", "registries-invalid", "probe-incomplete",
		"k3s-config-conflict", "k3s-foreign", "k3s-other-role", "k3s-downgrade", "k3s-skips-minor", "k3s-crash-loop",
		"k3s-start-timeout", "k3s-binary-mismatch", "server-alone", "containerd-template-dead",
		"containerd-template-by-toolkit", "containerd-template-frozen", "datastore-one-way",
	})
}
