// Package rollout decides which machines of a group may change now. It is pure: it has no clock, sends nothing, and knows neither Ironic
// nor Terraform (reference/rollout.md#who-may-start).
package rollout

import (
	"cmp"
	"strconv"
	"time"
)

// defaultMaxFailures is the failure budget of machines that run already and get the same content, unless the user sets another.
const defaultMaxFailures = 3

// Settings are what the user asks for: of a deployment or a host, or as the default of the provider.
type Settings struct {
	Group          string        // machines that must not be away together; "": machines that get the same content are a group
	MaxUnavailable int           // how many members of the group may be away at once; 0: any number
	Pause          time.Duration // how long a member runs before the next one starts
	Canary         *int          // how many members go first; nil: not set
	MaxFailures    *int          // how many failures stop the rollout; nil: not set; 0: none does
}

// Or returns the settings with the defaults of the provider for what they leave open.
func (s Settings) Or(defaults Settings) Settings {
	if s.Canary == nil {
		s.Canary = defaults.Canary
	}
	if s.MaxFailures == nil {
		s.MaxFailures = defaults.MaxFailures
	}
	return s
}

// Differs returns the name of a setting in which two members of a group differ; "" if none.
func (s Settings) Differs(o Settings) string {
	switch {
	case s.MaxUnavailable != o.MaxUnavailable:
		return "max_unavailable"
	case s.Pause != o.Pause:
		return "pause"
	case number(s.Canary) != number(o.Canary):
		return "canary"
	case number(s.MaxFailures) != number(o.MaxFailures):
		return "max_failures"
	}
	return ""
}

// Rules are the rules of a group.
type Rules struct {
	MaxUnavailable int // 0: no limit
	Pause          time.Duration
	Canary         int  // 0: none
	MaxFailures    int  // 0: no limit
	First          bool // the failures of first deployments count, too
}

// Rules returns the rules that follow from the settings.
func (s Settings) Rules() Rules {
	r := Rules{MaxUnavailable: s.MaxUnavailable, Pause: s.Pause, MaxFailures: defaultMaxFailures, First: s.MaxFailures != nil}
	if s.Canary != nil {
		r.Canary = *s.Canary
	}
	if s.MaxFailures != nil {
		r.MaxFailures = *s.MaxFailures
	}
	return r
}

// Change is what happens to a machine.
type Change string

// The changes.
const (
	FirstDeployment Change = "deploy"  // nothing that runs on the machine is lost
	Replacement     Change = "replace" // it is undeployed, and another deployment takes its place
	Rebuild         Change = "rebuild"
	Restart         Change = "restart"
	Service         Change = "service" // BIOS settings and firmware of the machine change, and it restarts
	Check           Change = "check"   // it was not ready, and is checked again, which touches nothing
)

// Concerns reports whether a change has to wait for its turn. A first deployment has to only if the user asks for it, because nothing is
// lost with it.
func (s Settings) Concerns(change Change) bool {
	return change != FirstDeployment || s.Group != "" || s.Canary != nil || s.MaxFailures != nil
}

// Key returns the name of the group of a machine (reference/rollout.md#groups): machines of different groups do not wait for each other.
// content identifies what the machine gets.
func (s Settings) Key(change Change, content string) string {
	if s.Group != "" {
		return "group " + s.Group
	}
	if change == Check {
		change = Rebuild
	}
	return string(change) + " " + content + " " + number(s.Canary) + " " + number(s.MaxFailures)
}

func number(n *int) string {
	if n == nil {
		return "-"
	}
	return strconv.Itoa(*n)
}

// Member is a machine that waits for its turn.
type Member struct {
	ID       string // UUID of its node
	Name     string // for messages
	Change   Change
	Failures int       // recent failures: it waits behind members with fewer
	Queued   time.Time // when it began to wait
	Away     bool      // it is not available anyway: its turn takes nothing away
}

// most is the number of failures that the order tells apart.
const most = 5

// before is the order of the queue: checks, which touch no machine, then failures, time and ID (reference/rollout.md#order-of-turns).
func (m Member) before(o Member) int {
	if m.Change != o.Change {
		if m.Change == Check {
			return -1
		}
		if o.Change == Check {
			return 1
		}
	}
	return cmp.Or(cmp.Compare(min(m.Failures, most), min(o.Failures, most)), m.Queued.Compare(o.Queued), cmp.Compare(m.ID, o.ID))
}

// Absence is a member of the group that this run does not work on, and that is away, or is to be left running for a while.
type Absence struct {
	ID, Name string
	Working  bool      // another run works on it
	Silent   bool      // that run gives no sign of life
	Service  bool      // by a service of its host, and not by a change of its deployment
	Most     int       // max_unavailable of the group for the run that has written this; 0: not known
	Failed   bool      // its last change has failed
	Until    time.Time // it is ready, and its pause ends then; zero: it has none
}

func (a Absence) isAway(now time.Time) bool { return a.Working || a.Failed || now.Before(a.Until) }
