// Package bootiso decides which machines a new live ISO concerns. It is pure code: it knows neither Ironic nor Terraform.
package bootiso

// Action is what a new image asks of a machine.
type Action string

// The actions.
const (
	None   Action = "none"   // the machine runs on
	Reboot Action = "reboot" // boot it with the new image
	Wait   Action = "wait"   // it is concerned, and there is no settled newer image yet
	Manual Action = "manual" // it is concerned, and nobody can restart it but a person
)

// Facts are what the decision depends on.
type Facts struct {
	Installing     bool // what the image is for has begun, an installation to disk above all: exempt
	Registered     bool // what the image starts has reported
	Newer          bool // the image is another one than the machine was booted with
	SharedObsolete bool // something that all machines share has changed since
	OwnAtBoot      bool // it was booted with something of its own
	OwnObsolete    bool // which has changed since, or is gone; implies OwnAtBoot
	OwnUnused      bool // there is something of its own that it was not booted with
	Settled        bool // the quiet period of the image is over
}

// bit is what a rule asks of a fact; its zero value asks nothing.
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

	installing, registered, newer, shared, ownAtBoot, ownObsolete, ownUnused, settled bit

	action Action
	stale  bool
}

// rules is the decision table; the first line that fits decides (reference discovery-boot-limit.md 3.1). It takes the
// origin's prose where its chart says otherwise: a machine whose own configuration is current is left alone even if
// something shared is obsolete. An own configuration that came after the boot concerns its machine.
func rules() []rule {
	return []rule{
		{why: "it is being installed", installing: yes, registered: no, newer: yes, action: None, stale: true},
		{why: "it is being installed", installing: yes, registered: no, action: None},
		{why: "it is being installed", installing: yes, ownObsolete: yes, action: None, stale: true},
		{why: "it is being installed", installing: yes, shared: yes, action: None, stale: true},
		{why: "it is being installed", installing: yes, ownAtBoot: no, ownUnused: yes, action: None, stale: true},
		{why: "it is being installed", installing: yes, action: None},

		{why: "it has the newest image and has not registered yet", registered: no, newer: no, action: None},
		{why: "it has not registered, and its newer image has not settled", registered: no, settled: no, action: Wait, stale: true},
		{why: "it has not registered, and there is a newer image", registered: no, action: Reboot, stale: true},

		{why: "its own configuration changed, and there is no newer image yet", ownObsolete: yes, newer: no, action: Wait, stale: true},
		{why: "its own configuration changed, and the newer image has not settled", ownObsolete: yes, settled: no, action: Wait, stale: true},
		{why: "its own configuration changed", ownObsolete: yes, action: Reboot, stale: true},
		{why: "it got a configuration of its own, and there is no newer image yet", ownAtBoot: no, ownUnused: yes, newer: no, action: Wait, stale: true},
		{why: "it got a configuration of its own, and the newer image has not settled", ownAtBoot: no, ownUnused: yes, settled: no, action: Wait, stale: true},
		{why: "it got a configuration of its own", ownAtBoot: no, ownUnused: yes, action: Reboot, stale: true},

		{why: "only what all machines share has changed", shared: yes, action: None, stale: true},
		{why: "nothing that it uses has changed", action: None},
	}
}

// decide looks the facts up in the table.
func (f Facts) decide() rule {
	for _, r := range rules() {
		if r.installing.fits(f.Installing) && r.registered.fits(f.Registered) && r.newer.fits(f.Newer) &&
			r.shared.fits(f.SharedObsolete) && r.ownAtBoot.fits(f.OwnAtBoot) && r.ownObsolete.fits(f.OwnObsolete) &&
			r.ownUnused.fits(f.OwnUnused) && r.settled.fits(f.Settled) {
			return r
		}
	}
	return rule{action: None} // the last rule fits everything
}
