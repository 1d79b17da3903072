package host

// State says how much is known of a fact.
type State string

const (
	// StateKnown: Value holds what was seen.
	StateKnown State = "known"
	// StateAbsent: it was looked for and is not there. Value is zero.
	StateAbsent State = "absent"
	// StateUnknown: it could not be looked for; Why says why. The zero Fact is unknown too.
	StateUnknown State = "unknown"
)

// Fact is one observed thing with how much is known of it. An unknown fact
// blocks only what needs it.
type Fact[T any] struct {
	State State `json:"state"`
	Value T     `json:"value,omitzero"`
	// Why is the reason of StateUnknown: "timeout after 20s", "denied: ...".
	Why string `json:"why,omitempty"`
}

// Known makes a fact that was seen.
func Known[T any](v T) Fact[T] { return Fact[T]{State: StateKnown, Value: v} }

// Absent makes a fact that was looked for and is not there.
func Absent[T any]() Fact[T] { return Fact[T]{State: StateAbsent} }

// Unknown makes a fact that could not be observed.
func Unknown[T any](why string) Fact[T] { return Fact[T]{State: StateUnknown, Why: why} }

// Has says whether the value was seen.
func (f Fact[T]) Has() bool { return f.State == StateKnown }

// Missing says whether it was looked for and is not there.
func (f Fact[T]) Missing() bool { return f.State == StateAbsent }

// Unsure says whether nothing is known. The zero Fact is unsure.
func (f Fact[T]) Unsure() bool { return !f.Has() && !f.Missing() }

// Reason is why nothing is known, never empty for an unsure fact.
func (f Fact[T]) Reason() string {
	if f.Unsure() && f.Why == "" {
		return "not probed"
	}
	return f.Why
}
