// Package decide has the words of a plan: what a plan shows and what an apply does is one decision, which one pure function of each noun
// makes, Decide(Wish, Seen) Plan, in the plan.go of its package. The functions make no request, read no clock and return no error.
//
//   - Wish is what the configuration asks for. Each of its values may be unknown.
//   - Seen is what the state, private state, the last read and the shared lists say, with the time.
//   - Plan has the ordered steps, each with its cost, the notices, and the forecast of computed values and counters.
package decide

import (
	"reflect"
	"slices"
)

// Value is a setting. Its zero value is null: the configuration omits it.
type Value[T any] struct {
	V       T    // the value if it is set; of a set or object that is known in part, the part that is known
	Set     bool // it is known and not null
	Unknown bool // it, or a part of it, is known only after an apply
}

// Known returns a value that is set.
func Known[T any](v T) Value[T] { return Value[T]{V: v, Set: true} }

// Unknown returns a value that is not known yet.
func Unknown[T any]() Value[T] { return Value[T]{Unknown: true} }

// IsNull reports whether the configuration omits the setting.
func (v Value[T]) IsNull() bool { return !v.Set && !v.Unknown }

// Cost is what a step does to a machine at worst.
type Cost int

// The costs, in the order of the harm that they do.
const (
	Free    Cost = iota // the machine goes on as it is
	Restart             // what runs on the machine stops for some minutes: a restart, a rescue, a service
	Clean               // Ironic cleans a machine that runs nothing; what is on its disks may be erased
	Wipe                // Ironic writes the machine's disks: a deployment, a rebuild, an undeploy
)

// Severity says whether a notice stops the run.
type Severity int

// The severities.
const (
	Warning Severity = iota
	Refusal          // the plan fails
)

// Notice is a message of a plan to the user.
type Notice struct {
	Severity        Severity
	At              Path // the attribute that it concerns; nil: the whole resource
	Summary, Detail string
}

// Path is the way to an attribute: names of attributes (string), keys of maps (Key) and positions in lists (int).
type Path []any

// Key is the key of an element of a map, as a part of a Path.
type Key string

// At returns the path of an attribute.
func At(parts ...any) Path { return parts }

// Warn returns a warning that concerns an attribute; with nil the whole resource.
func Warn(at Path, summary, detail string) Notice { return Notice{Warning, at, summary, detail} }

// Refuse returns a refusal that concerns an attribute; with nil the whole resource.
func Refuse(at Path, summary, detail string) Notice { return Notice{Refusal, at, summary, detail} }

// Same reports whether two values are equal. Values that are unknown are not equal to any that are known.
func Same[T any](a, b Value[T]) bool {
	return a.Set == b.Set && a.Unknown == b.Unknown && reflect.DeepEqual(a.V, b.V)
}

// Refused reports whether a notice refuses the plan.
func Refused(notices []Notice) bool {
	return slices.ContainsFunc(notices, func(n Notice) bool { return n.Severity == Refusal })
}
