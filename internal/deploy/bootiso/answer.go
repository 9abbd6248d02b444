package bootiso

import (
	"slices"
	"strings"
)

// Names in Status.Obsolete, besides "shared.NAME", "host.NAME" and the names in Input.Changed and Input.Demanded.
const (
	ObsoleteImage   = "image"   // the image itself, of a machine that has not registered or has the policy "always"
	ObsoleteUnknown = "unknown" // there is no record of the machine's boot
)

// Status says what is obsolete of a machine's boot, and what to do about it.
type Status struct {
	Stale    bool     // an artifact of its boot is obsolete
	Obsolete []string // the names of the obsolete artifacts, sorted
	Action   Action
	Why      string // the reason, a clause such as "nothing that it uses has changed"
}

// Answer is the decision about a machine.
type Answer struct {
	Apply Status // what an apply does, which first waits until the image has settled
	Now   Status // the same without that wait; the action is Manual while the machine waits for a restart by hand
	Newer bool   // the wanted image differs from the one in the record of the boot
	Loops bool   // the apply would exceed the loop guard
}

// Decide says what a live ISO asks of a machine. It restarts a machine without a record of its boot only on demand; otherwise the
// caller records the wanted artifacts for later comparisons.
func Decide(in Input) Answer {
	if in.Machine.Booted == nil && len(in.Demanded) > 0 && !in.Imported {
		demanded := in.overrides(Status{})
		return Answer{Apply: demanded, Now: demanded, Newer: true}
	}
	if in.Machine.Booted == nil {
		unknown := Status{Obsolete: []string{ObsoleteUnknown}, Action: None, Why: "there is no record of what it was booted with"}
		return Answer{Apply: unknown, Now: unknown}
	}
	facts, obsolete := in.facts()
	facts.Settled = true
	answer := Answer{Apply: in.status(facts, obsolete), Newer: facts.Newer}
	answer.Loops = answer.Apply.Action == Restart && !in.Unbuilt && in.Machine.Booted.Exhausted(in.Want.Artifacts, in.Now)
	facts.Settled = !in.Want.SettlesAt().After(in.Now)
	answer.Now = in.status(facts, obsolete)
	if in.Machine.Asked && answer.Now.Action == None {
		answer.Now = Status{
			Stale: true, Obsolete: in.Machine.Booted.asked(), Action: Manual,
			Why: "an apply has asked for a restart by hand, and Ironic has not seen one since",
		}
	}
	return answer
}

// AfterBoot returns what Decide says now of the machine once it has booted what is wanted.
func (in Input) AfterBoot() Status {
	record := NewRecord(in.Want.Artifacts, in.Now, nil).Holding(in.Want.Artifacts, in.Machine.Wanted)
	in.Machine.Booted, in.Machine.Wanted, in.Machine.Asked = &record, nil, false
	return Decide(Input{Machine: in.Machine, Want: in.Want, Now: in.Now}).Now
}

// status applies the decision table, and then what can override it, to a machine with a record of its boot.
func (in Input) status(facts Facts, obsolete []string) Status {
	late := facts
	if late.Newer = facts.Newer && !in.predates(); !facts.Registered {
		late.Newer = facts.Newer // whatever the image contains, it may let the machine register
	}
	r := late.rule()
	status := Status{Stale: r.stale, Action: r.action, Why: r.why}
	if facts.Newer && !late.Newer && status.Action == Wait {
		status.Why = "its own configuration changed after the image did"
	}
	if facts.Installing && !in.Want.Installing {
		status.Why = "it is protected in Ironic"
		if in.Want.Policy != PolicyNever {
			status.Why += "; with protected = false, a new image can restart it"
		}
	}
	in.applyPolicy(&status, facts)
	if status.Stale {
		status.Obsolete = slices.Clone(obsolete)
		if facts.Newer && (len(obsolete) == 0 || !facts.Registered) {
			status.Obsolete = append(status.Obsolete, ObsoleteImage)
		}
	}
	in.applyChanges(&status, facts)
	return in.overrides(status)
}

// predates reports whether the wanted image is known to be older than the machine's own configuration.
func (in Input) predates() bool { return !in.Unbuilt && in.Machine.Wanted.predates(in.Want.Artifacts) }

// overrides adds what a trigger demands, and then what prevents a restart.
func (in Input) overrides(status Status) Status {
	if len(in.Demanded) > 0 && !in.Imported {
		status.Stale, status.Obsolete = true, append(status.Obsolete, in.Demanded...)
		if status.Action != Restart {
			status.Action, status.Why = Restart, strings.Join(in.Demanded, ", ")+" changed"
		}
	}
	slices.Sort(status.Obsolete)
	if status.Action != Restart {
		return status
	}
	lacking := in.Want.Lacking()
	switch {
	case in.Imported:
		status.Action, status.Why = None, "it was imported, which touches no machine; the plan after this apply shows what "+
			"its image asks for"
	case in.Machine.barred() != "":
		status.Action, status.Why = Wait, status.Why+", and "+in.Machine.barred()
	case len(lacking) > 0:
		status.Action, status.Why = Wait, status.Why+", and the image does not contain "+strings.Join(lacking, ", ")+" yet"
	case !in.Machine.Powered:
		status.Action, status.Why = Manual, status.Why+", and Ironic cannot switch its power"
	}
	return status
}

// applyPolicy changes a status of the decision table as the policies "always" and "never" demand.
func (in Input) applyPolicy(status *Status, facts Facts) {
	switch {
	case in.Want.Policy == PolicyNever && status.Action != None:
		status.Action, status.Why = None, "reboot_policy is \"never\""
	case in.Want.Policy == PolicyAlways && facts.Newer && !facts.Installing && (status.Action == None || in.predates()) && facts.Settled:
		*status = Status{Stale: true, Action: Restart, Why: "reboot_policy is \"always\""}
	case in.Want.Policy == PolicyAlways && facts.Newer && !facts.Installing && status.Action == None:
		*status = Status{Stale: true, Action: Wait, Why: "the newer image has not settled"}
	}
}

// applyChanges adds the other settings that changed: they restart a machine that the image alone would leave running.
func (in Input) applyChanges(status *Status, facts Facts) {
	if len(in.Changed) == 0 || in.Imported || facts.Installing || in.Want.Policy == PolicyNever {
		return
	}
	status.Stale, status.Obsolete = true, append(status.Obsolete, in.Changed...)
	if status.Action == Restart {
		return
	}
	status.Action, status.Why = Restart, strings.Join(in.Changed, ", ")+" changed"
	if !facts.Settled {
		status.Action, status.Why = Wait, status.Why+", and the image has not settled"
	}
}

// facts compares the record of a machine's boot with the wanted artifacts. It also returns the names of the artifacts that
// were added, changed or removed.
func (in Input) facts() (Facts, []string) {
	booted, want := in.Machine.Booted, in.Want
	shared := differences("shared.", booted.SharedContent, hashes(want.SharedContent))
	host := differences("host.", booted.HostContent, hashes(want.HostContent))
	hadContent := len(booted.HostContent) > 0
	return Facts{
		Installing: in.installing(), Registered: want.Registered,
		Newer:          in.Unbuilt || booted.Image != hash(want.Identity()),
		SharedObsolete: len(shared) > 0,
		HostAtBoot:     hadContent,
		HostObsolete:   hadContent && len(host) > 0,
		HostUnused:     !hadContent && len(host) > 0,
	}, append(shared, host...)
}

// differences returns the names with different values in a and b, and those that one of them lacks.
func differences(prefix string, a, b map[string]string) (names []string) {
	for key, value := range a {
		if other, exists := b[key]; !exists || other != value {
			names = append(names, prefix+key)
		}
	}
	for key := range b {
		if _, exists := a[key]; !exists {
			names = append(names, prefix+key)
		}
	}
	return names
}
