// Package forecast says how long the apply of a saved plan takes, and when each machine is away. It runs the scheduler of the provisioning
// limit (package throttle) and of rollouts (package rollout) in virtual time. It is pure: planned reads the plan, survey reads the site.
package forecast

import (
	"cmp"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/rollout"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/throttle"
)

// Operation is what Ironic does with a machine.
type Operation string

// The operations.
const (
	Deploy   Operation = "deploy"   // also a rebuild, up to the end of the ready check
	Undeploy Operation = "undeploy" // without the cleaning that follows
	Clean    Operation = "clean"
	Inspect  Operation = "inspect"
	Restart  Operation = "restart" // also a start with a ready check, up to its end
	Service  Operation = "service" // BIOS settings and firmware of a deployed machine
	PowerOn  Operation = "power-on"
	Verify   Operation = "verify" // of the BMC, which takes no slot
)

// Leg is a row of operations that follow each other in one slot.
type Leg []Operation

// Target is a machine that a plan changes.
type Target struct {
	throttle.Machine        // ID is the UUID of its node, or the address of the resource that decides which node it is
	Class            string // "": not known
	New              bool   // the plan makes the node
	Unknown          string // why its node is not known before the apply; "": it is
	Failures         int    // recent failures: it waits longer for a slot
}

func (m *Target) label() string { return cmp.Or(m.Name, m.ID) }

// Turn is what a step asks of the rollout.
type Turn struct {
	Settings rollout.Settings
	Change   rollout.Change
	Content  string // identifies what the machine gets
	Node     string // of the new deployment, as configured; "": not known
	Away     bool   // the machine is not available anyway
}

// Step is what Terraform does with one instance of a resource.
type Step struct {
	Address  string
	Does     string  // for people, such as "rebuild"
	Machine  *Target // nil: it needs none
	Legs     []Leg
	Turn     *Turn // nil: it needs none
	Removes  bool  // the instance is destroyed
	Prepares bool  // it works for a host, which leaves a machine alone on which something is deployed
	Attempts int   // how often a deployment is tried; zero: once
	After    []int // the steps that must have ended before
	MayBe    bool  // whether it touches the machine is not known before the apply
}

// Occupied is a machine with an operation in progress that the plan did not begin.
type Occupied struct {
	throttle.Machine
	Does  []Operation // what is in progress, and what follows in the same slot; nil: not known how long it takes
	Class string
}

// Site is what is known of the site at the beginning.
type Site struct {
	Now      time.Time
	Occupied []Occupied
	Waiting  []throttle.Word              // machines of other runs that wait for a slot
	Away     map[string][]rollout.Absence // by rollout group
}

// Settings are those of the run.
type Settings struct {
	Limit       throttle.Limit
	Parallelism int
	Canary      *int // replaces that of all rollouts; nil: it does not
}

// WhatIf is what goes wrong.
type WhatIf struct {
	ImageFails bool     // each deployment and each rebuild
	Dead       []string // each operation on the machines with these names or UUIDs, at once
}

// Input is all that a forecast depends on.
type Input struct {
	Steps    []Step
	Site     Site
	Settings Settings
	Times    Times
	WhatIf   WhatIf
	Poll     time.Duration // the longest time between two polls of a machine

	// Order has the addresses of the steps as Terraform begins with them, those of removals after a "-". nil: not known, so that several
	// are tried.
	Order []string
}
