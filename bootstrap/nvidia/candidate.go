package nvidia

import (
	"errors"
	"strings"

	"github.com/gpuctl/gpuctl/bootstrap/remote"
	"github.com/gpuctl/gpuctl/internal/diag"
)

// exitNoCandidate is how a change of packages says that the lists lack one.
const exitNoCandidate = 65

// NoCandidateError says that the package lists of a machine, after a refresh, lack
// what is wanted. It is a finding that only shows on the way: nothing was
// installed, and another version is not taken instead.
type NoCandidateError struct {
	Finding diag.Finding
	Err     error
}

func (e *NoCandidateError) Error() string { return e.Finding.Evidence }
func (e *NoCandidateError) Unwrap() error { return e.Err }

// DiagCode names the entry of the catalogue.
func (e *NoCandidateError) DiagCode() diag.Code { return e.Finding.Code }

// candidates makes a *NoCandidateError of the failure that means one.
func candidates(code diag.Code, machine string, err error) error {
	var exit *remote.ExitError
	if !errors.As(err, &exit) || exit.Code != exitNoCandidate {
		return err
	}
	said := strings.TrimSpace(string(exit.Stderr))
	if i := strings.LastIndexByte(said, '\n'); i >= 0 {
		said = said[i+1:]
	}
	return &NoCandidateError{Finding: diag.Found(code, machine, said), Err: err}
}
