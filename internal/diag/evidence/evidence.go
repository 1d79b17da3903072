// Package evidence says which entries of the failure catalogue the product
// detects, and which tests provoke them. It is read from the code: a test scans
// the sources, writes the table (-update) and fails where it has become wrong.
package evidence

// Of is what the code has of one entry.
type Of struct {
	// Detected: code outside the catalogue raises the entry.
	Detected bool `json:"detected"`
	// ProvokedIn are the kinds of tests that expect it: "unit", "lab".
	ProvokedIn []string `json:"provokedIn"`
}

// For returns what the code has of the entry with this code.
func For(code string) Of {
	s := table()[code]
	of := Of{Detected: s&detected != 0, ProvokedIn: []string{}}
	if s&unit != 0 {
		of.ProvokedIn = append(of.ProvokedIn, "unit")
	}
	if s&lab != 0 {
		of.ProvokedIn = append(of.ProvokedIn, "lab")
	}
	return of
}

type where int

const (
	detected where = 1 << iota
	unit
	lab
)
