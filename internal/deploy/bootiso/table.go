// Package bootiso decides which machines a new live ISO concerns. It is pure code: it knows neither Ironic nor Terraform.
package bootiso

// Action is what a new image asks of a machine.
type Action string

// The actions.
const (
	None    Action = "none"    // keep the machine running
	Restart Action = "restart" // boot it with the new image
	Wait    Action = "wait"    // it needs a newer image, which does not exist or has not settled yet
	Manual  Action = "manual"  // it needs the new image, and a person must restart it
)

// Facts are what the decision table depends on.
type Facts struct {
	Installing bool // the job of the image has begun, for example an installation to disk: the machine keeps running
	Registered bool // the software on the image has reported
	// the image differs from the one that the machine booted; status clears it if a registered machine has newer artifacts of its own
	Newer          bool
	SharedObsolete bool // a shared artifact has changed since the boot
	HostAtBoot     bool // the machine booted with artifacts of its own
	HostObsolete   bool // its own artifacts have changed since the boot; implies HostAtBoot
	HostUnused     bool // it has artifacts of its own, and booted without any
	Settled        bool // the quiet period of the image has ended
}

// bit is the condition of a rule on a fact; its zero value is no condition.
type bit byte

const (
	either bit = iota
	yes
	no
)

func (b bit) fits(fact bool) bool { return b == either || fact == (b == yes) }

// rule is a line of the decision table.
type rule struct {
	why string

	installing, registered, newer, shared, hostAtBoot, hostObsolete, hostUnused, settled bit

	action Action
	stale  bool
}

// rules is the decision table; the first rule that fits decides (reference/live-iso.md#when-a-machine-is-rebooted). Where the
// source's text and chart differ, it follows the text: a machine with a current configuration of its own keeps running even if
// a shared artifact is obsolete. A configuration of its own that is newer than the boot counts as a change.
func rules() []rule {
	return []rule{
		{why: "it is being installed", installing: yes, registered: no, newer: yes, action: None, stale: true},
		{why: "it is being installed", installing: yes, registered: no, action: None},
		{why: "it is being installed", installing: yes, hostObsolete: yes, action: None, stale: true},
		{why: "it is being installed", installing: yes, shared: yes, action: None, stale: true},
		{why: "it is being installed", installing: yes, hostAtBoot: no, hostUnused: yes, action: None, stale: true},
		{why: "it is being installed", installing: yes, action: None},

		{why: "it has the newest image and has not registered yet", registered: no, newer: no, action: None},
		{why: "it has not registered, and its newer image has not settled", registered: no, settled: no, action: Wait, stale: true},
		{why: "it has not registered, and there is a newer image", registered: no, action: Restart, stale: true},

		{why: "its own configuration changed, and there is no newer image yet", hostObsolete: yes, newer: no, action: Wait, stale: true},
		{
			why: "its own configuration changed, and the newer image has not settled", hostObsolete: yes, settled: no,
			action: Wait, stale: true,
		},
		{why: "its own configuration changed", hostObsolete: yes, action: Restart, stale: true},
		{
			why: "it got a configuration of its own, and there is no newer image yet", hostAtBoot: no, hostUnused: yes, newer: no,
			action: Wait, stale: true,
		},
		{
			why: "it got a configuration of its own, and the newer image has not settled", hostAtBoot: no, hostUnused: yes, settled: no,
			action: Wait, stale: true,
		},
		{why: "it got a configuration of its own", hostAtBoot: no, hostUnused: yes, action: Restart, stale: true},

		{why: "only what all machines share has changed", shared: yes, action: None, stale: true},
		{why: "nothing that it uses has changed", action: None},
	}
}

func (f Facts) rule() rule {
	for _, r := range rules() {
		if r.installing.fits(f.Installing) && r.registered.fits(f.Registered) && r.newer.fits(f.Newer) &&
			r.shared.fits(f.SharedObsolete) && r.hostAtBoot.fits(f.HostAtBoot) && r.hostObsolete.fits(f.HostObsolete) &&
			r.hostUnused.fits(f.HostUnused) && r.settled.fits(f.Settled) {
			return r
		}
	}
	return rule{action: None} // the last rule fits everything
}
