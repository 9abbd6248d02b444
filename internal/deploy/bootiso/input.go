package bootiso

import (
	"slices"
	"time"
)

// Policy says which machines a new image restarts.
type Policy string

// The policies.
const (
	PolicyAffected Policy = "affected" // the machines that the decision table selects
	PolicyAlways   Policy = "always"   // all machines except those that install
	PolicyNever    Policy = "never"    // none
)

// Want is what the configuration wants of a machine.
type Want struct {
	Artifacts
	Policy     Policy
	Installing bool          // the job of the image has begun
	Registered bool          // the software on the image has reported
	Quiet      time.Duration // how long an image must have been unchanged before machines boot it
	BuiltAt    time.Time     // when the image was built; zero: unknown
}

// NewWant returns what a configuration wants that sets nothing but artifacts. It has the defaults of all optional settings.
func NewWant(a Artifacts) Want {
	return Want{Artifacts: a, Policy: PolicyAffected, Registered: true, Quiet: time.Minute}
}

// Lacking returns the names of wanted artifacts that the image was built without, sorted; none if it is not known what it was built with.
func (w Want) Lacking() []string {
	if w.Contains == nil {
		return nil
	}
	var names []string
	for prefix, content := range map[string]map[string]string{"shared.": w.SharedContent, "host.": w.HostContent} {
		for name, value := range content {
			if have, exists := w.Contains[name]; !exists || have != value {
				names = append(names, prefix+name)
			}
		}
	}
	slices.Sort(names)
	return names
}

// SettlesAt returns the end of the quiet period. The result is zero if the time of the build is unknown.
func (w Want) SettlesAt() time.Time {
	if w.BuiltAt.IsZero() {
		return time.Time{}
	}
	return w.BuiltAt.Add(w.Quiet)
}

// Candidate has the facts of a node that the decision depends on. It can be kept as JSON between two runs.
type Candidate struct {
	Label     string  `json:"label"`            // name of the node in messages
	Booted    *Record `json:"record,omitempty"` // nil: unknown
	Protected bool    `json:"protected,omitempty"`
	Powered   bool    `json:"powered,omitempty"` // Ironic can restart it
	Asked     bool    `json:"asked,omitempty"`   // an apply has asked for a restart by hand, and Ironic has seen none since
	Rescued   bool    `json:"rescued,omitempty"` // it is in rescue mode, or on the way into or out of it
	Wanted    *Wanted `json:"wanted,omitempty"`  // nil: unknown
	// why nothing may restart it at present, a clause such as "it is retired"; empty: nothing prevents that
	Barred string `json:"barred,omitempty"`
}

// barred returns why the machine cannot be restarted at present; "" if it can.
func (m Candidate) barred() string {
	if m.Rescued {
		return "it is in rescue mode"
	}
	return m.Barred
}

// Input is all that the decision about a machine depends on.
type Input struct {
	Machine  Candidate
	Want     Want
	Unbuilt  bool      // the wanted image does not exist yet: it counts as newer than the booted one
	Demanded []string  // names of triggers that changed: they boot the machine anew, whatever it does
	Changed  []string  // names of other settings of the deployment that changed since the boot
	Imported bool      // no apply has followed the import: the machine keeps running
	Now      time.Time // the time at which the quiet period is checked
}

// installing reports whether the machine keeps running for its job. A protected node counts as installing: an installer may
// protect it.
func (in Input) installing() bool { return in.Want.Installing || in.Machine.Protected }
