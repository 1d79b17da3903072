package provision

import (
	"errors"
	"fmt"
	"strings"
)

// Diagnostic is a warning or an error as Terraform says it. Values that
// Terraform quotes from the source are left out: they may be secret.
type Diagnostic struct {
	// Severity is "error" or "warning".
	Severity string `json:"severity"`
	Summary  string `json:"summary"`
	Detail   string `json:"detail,omitempty"`
	// Address is the resource it is about, Place file:line of the source.
	Address string `json:"address,omitempty"`
	Place   string `json:"place,omitempty"`
}

func (d Diagnostic) String() string {
	var at []string
	for _, s := range []string{d.Address, d.Place} {
		if s != "" {
			at = append(at, s)
		}
	}
	text := strings.TrimSuffix(d.Summary, ".")
	if len(at) > 0 {
		text += " (" + strings.Join(at, ", ") + ")"
	}
	if detail := strings.Join(strings.Fields(d.Detail), " "); detail != "" {
		text += ": " + detail
	}
	return text
}

// RunError says that Terraform ended with an error. What it did before stays
// done and is in its state: the next plan begins there.
type RunError struct {
	// Program is terraform or tofu, Verb what it was to do (init, plan, apply,
	// destroy, output), Dir the root module.
	Program, Verb, Dir string
	// Diagnostics are its errors, at least one unless Err speaks for itself.
	Diagnostics []Diagnostic
	Err         error
}

func (e *RunError) Error() string {
	var said []string
	for _, d := range e.Diagnostics {
		said = append(said, d.String())
	}
	if len(said) == 0 {
		said = []string{e.Err.Error()}
	}
	return fmt.Sprintf("%s %s in %s: %s", e.Program, e.Verb, e.Dir, strings.Join(said, "; "))
}

func (e *RunError) Unwrap() error { return e.Err }

// Locked says that another run holds the lock of the state.
func (e *RunError) Locked() bool {
	for _, d := range e.Diagnostics {
		if strings.Contains(d.Summary, "acquiring the state lock") {
			return true
		}
	}
	return false
}

// failed is the error of a run: the diagnostics where there are some, else what
// the program printed.
func (t Terraform) failed(verb string, err error, said []Diagnostic) error {
	e := &RunError{Program: t.name(), Verb: verb, Dir: t.Dir, Err: errors.New(t.hide(plainText(err.Error())))}
	for _, d := range said {
		if d.Severity == "error" {
			e.Diagnostics = append(e.Diagnostics, d)
		}
	}
	return e
}

// plainText takes the frame that Terraform draws around messages off, and
// folds them into one line.
func plainText(text string) string {
	text = strings.Map(func(r rune) rune {
		if strings.ContainsRune("╷│╵", r) {
			return ' '
		}
		return r
	}, text)
	return strings.Join(strings.Fields(text), " ")
}

// hide masks secrets. What is shorter than four characters is in every other word.
func (t Terraform) hide(text string) string {
	for _, s := range t.Secrets {
		if len(s) >= 4 {
			text = strings.ReplaceAll(text, s, "********")
		}
	}
	return text
}
