// Package throttle implements provisioning_limit: how many machines of a site may have an operation in progress at once. A pure
// scheduler (Decide) says which machines may start. A Limiter keeps the queue of machines that wait for a slot, counts the busy
// machines, holds the lock that several runs share, and collects notices for the user. The package depends on neither Ironic nor
// Terraform; the interface Site is what it needs of a site.
package throttle

import (
	"context"
	"path"
	"slices"
	"time"
)

// Scope says which machines share a limit.
type Scope string

// The scopes: all machines of a site, those of a conductor group, those of a shard.
const (
	ScopeAll            Scope = "all"
	ScopeConductorGroup Scope = "conductor_group"
	ScopeShard          Scope = "shard"
)

// Coordination says among which runs a limit is exact.
type Coordination string

// The coordinations: among all runs that share a site, by a lock record in it, or within this process.
const (
	CoordinationIronic  Coordination = "ironic"
	CoordinationProcess Coordination = "process"
)

// Defaults of provisioning_limit.
const (
	DefaultMax        = 20
	DefaultStuckAfter = 45 * time.Minute
	MaxVariable       = "MAX_CONCURRENT_PROVISIONING_HOSTS" // of the environment, if the provider block does not set Max
)

// Limit is the configuration provisioning_limit. The zero Limit means no limit.
type Limit struct {
	// Max is how many machines of one scope may have an operation in progress at once; zero means no limit.
	Max int
	// StuckAfter is how long a machine may be in one state before it does not count any more; zero means forever.
	StuckAfter   time.Duration
	Scope        Scope        // "" means ScopeAll
	Coordination Coordination // "" means CoordinationProcess
	// Exempt are patterns (path.Match) of boot interfaces. Machines with such an interface need no slot and take none.
	Exempt []string
}

// ScopeOf returns the scope of a machine. Only machines of the same scope compete for slots.
func (l Limit) ScopeOf(m Machine) string {
	switch l.Scope {
	case ScopeConductorGroup:
		return m.ConductorGroup
	case ScopeShard:
		return m.Shard
	case ScopeAll:
	}
	return ""
}

// Exempts reports whether a machine needs no slot and takes none because of its boot interface.
func (l Limit) Exempts(m Machine) bool {
	return slices.ContainsFunc(l.Exempt, func(pattern string) bool {
		ok, err := path.Match(pattern, m.BootInterface)
		return ok && err == nil
	})
}

// Machine is what the limiter needs to know about a machine.
type Machine struct {
	ID        string
	Name      string    // for the log; may be empty
	Label     string    // the name for messages
	State     string    // the state for messages
	Since     time.Time // when it entered its state, by the site's clock
	LastError string

	Busy     bool // it boots or writes in its state, whichever client started that
	Starting bool // it is being switched on or restarted

	ConductorGroup, Shard, BootInterface string

	// Source is the site's own record of the machine. The limiter passes it to Send.
	Source any
}

// Site is the site whose machines are counted. The texts of its errors contain no secrets.
type Site interface {
	Records
	// Machines lists all machines now.
	Machines(ctx context.Context) ([]Machine, error)
	// NextMachines waits for the next list that polling requests anyway.
	NextMachines(ctx context.Context) ([]Machine, error)
	// Now returns the time of the site's clock.
	Now() time.Time
	// Partial reports whether the user may be unable to see some machines of the site. They do not count.
	Partial() bool
	// Refused reports whether the site refused a verb because of its own limit.
	Refused(err error) bool
}
