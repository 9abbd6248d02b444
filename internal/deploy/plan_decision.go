package deploy

import (
	"maps"
	"slices"
	"strings"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/decide"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/states"
)

type decision struct {
	asked    Wish     // the configuration
	wish     Wish     // what the plan makes of it: some values of the state may stay
	was      Wish     // what the configuration is compared with: the state, and what the apply only records of an imported machine
	records  bool     // the apply records values of an imported machine for which nothing is deployed
	onChange OnChange // in force
	finished bool     // an earlier run has done what the configuration asks for, and did not record that
	seen     Seen
	plan     Plan
}

const unknownSummary = "Value must be known during plan"

// inForce returns on_change of the configuration, or the provider's default. It refuses one that is not known.
func (d *decision) inForce() (value OnChange, known bool) {
	for i, v := range []decide.Value[OnChange]{d.asked.OnChange, d.asked.DefaultOnChange} {
		switch {
		case v.Unknown:
			where := [...]string{"", " of the provider block"}[i]
			d.refuse(decide.At("on_change"), unknownSummary, "on_change"+where+" decides whether a change of content "+
				"wipes a disk, so the plan must know it. Set it to a value that does not depend on a resource.")
			return ChangeIgnored, false
		case v.Set:
			return v.V, true
		}
	}
	return ChangeRebuilds, true
}

func (d *decision) warn(at decide.Path, summary, detail string) {
	d.plan.Notices = append(d.plan.Notices, decide.Warn(at, summary, detail))
}

func (d *decision) refuse(at decide.Path, summary, detail string) {
	d.plan.Notices = append(d.plan.Notices, decide.Refuse(at, summary, detail))
}

func (d *decision) add(s Step) { d.plan.Steps = append(d.plan.Steps, s) }

func (d *decision) drop(kind Kind) {
	d.plan.Steps = slices.DeleteFunc(d.plan.Steps, func(s Step) bool { return s.Do == kind })
}

// imports reports whether this plan imports the machine: its apply touches no machine.
func (d *decision) imports() bool { return d.seen.Past.Phase == Importing }

// operate plans an operation of Ironic, and forecasts that values change by it. A machine that runs, and is only deployed anew, runs
// afterwards as before.
func (d *decision) operate(s Step) {
	f := &d.plan.Forecast
	runs := s.Do == DoRebuild && !s.Maybe && d.seen.State == stateActive && d.asked.Tries <= 1
	if f.LastError = (Text{}); !runs {
		f.State.Unknown, f.LastError = true, decide.Unknown[string]()
	}
	if !runs || d.seen.Attempts != decide.Known[int64](1) {
		f.Attempts = decide.Unknown[int64]()
	}
	if !runs || d.seen.Power.V != PowerOn {
		f.Power = decide.Unknown[PowerState]()
	}
	s.Ports = d.connections()
	d.add(s)
}

// connections returns the VIFs to attach and detach. A VIF that gets another port is detached first. Without vifs in the
// configuration, those that are attached stay. The first apply after an import only records them: the next plan shows those that are
// not attached.
func (d *decision) connections() (c VIFConnections) {
	if d.imports() || d.wish.VIFs.IsNull() {
		return c
	}
	c.Wanted = d.wish.Ports
	for _, vif := range d.was.Ports {
		if !slices.Contains(c.Wanted, vif) {
			c.Unwanted = append(c.Unwanted, vif.ID)
		}
	}
	return c
}

// savepoint returns a function that takes the wish back to what it is now.
func (d *decision) savepoint() (undo func()) {
	kept := d.wish
	kept.Content = maps.Clone(d.wish.Content)
	return func() { d.wish = kept }
}

// waits reports whether Ironic is at work on a deployment.
func (d *decision) waits() bool { return states.BeingDeployed(d.seen.State) }

// neverBegun reports whether the creation was interrupted before Ironic had begun to deploy the machine.
func (d *decision) neverBegun() bool { return d.seen.Unbegun && !Begun(d.seen.State) }

// resumes reports whether the apply finishes or repeats a deployment, and first whether nothing is deployed a second time by that: Ironic
// is at work on it, or has never begun.
func (d *decision) resumes() (resumes, first bool) {
	return !states.Finished(d.seen.State), d.waits() || d.neverBegun()
}

// recorded reports whether an earlier run has begun to deploy the configured content, or has deployed it, and was killed before it
// recorded that in the state.
func (d *decision) recorded() (begun, ran bool) {
	if runs := d.seen.Sight.Content; runs == "" || runs != d.asked.Deployment.Digest() {
		return false, false
	}
	resumes, _ := d.resumes()
	return d.waits(), !resumes && d.seen.Runs.Mark != "" && d.seen.Runs.Mark != d.seen.Sight.Content
}

// leavesImported reports whether the apply imports a machine that does not run its deployment, and leaves it so: an import touches no
// machine.
func (d *decision) leavesImported() bool {
	resumes, _ := d.resumes()
	return d.imports() && resumes && !d.waits()
}

// Begun reports whether Ironic has begun to deploy a machine in a state.
func Begun(state ironic.State) bool { return !states.Settled(states.GoalUndeployed, state) }

// nodeIn returns a node in a state, for questions about that state.
func nodeIn(state ironic.State) *ironic.Node { return &ironic.Node{ProvisionState: string(state)} }

type change int

const (
	same    change = iota
	differs        // certainly
	unclear        // something in them is not known yet
)

// compare compares a configured value with that of the state. A value with an unknown part is unclear, even if another part
// differs: Terraform plans again when everything is known, and that plan must not contradict this one.
func compare(wish, was Text) change {
	switch {
	case wish == was:
		return same
	case wish.Unknown:
		return unclear
	}
	return differs
}

func contentChange(wish, was Wish) (result change) {
	for _, name := range ContentNames() {
		result = max(result, compare(wish.Content[name], was.Content[name]))
	}
	return result
}

// redeploys says whether the difference between the wish and the state deploys the machine anew. A machine that was adopted is
// deployed for a trigger only.
func (d *decision) redeploys() change {
	content := contentChange(d.wish, d.was)
	if d.onChange == ChangeIgnored || d.was.Adopt || d.wish.Adopt {
		content = same
	}
	return max(content, compare(d.wish.Rebuild, d.was.Rebuild))
}

// unlessNull returns the value of the state, or the configured one if one of them is null: Terraform accepts no plan that keeps an
// attribute which the configuration adds or removes.
func unlessNull[T any](wish, was decide.Value[T]) decide.Value[T] {
	if wish.IsNull() || was.IsNull() {
		return wish
	}
	return was
}

func (d *decision) keepContent() {
	if d.wish.Content[attrImage] != d.was.Content[attrImage] {
		d.wish.Address = unlessNull(d.wish.Address, d.was.Address)
	}
	for _, name := range ContentNames() {
		d.wish.Content[name] = unlessNull(d.wish.Content[name], d.was.Content[name])
	}
}

// keepAsked plans the content and the triggers of the state.
func (d *decision) keepAsked() {
	d.keepContent()
	d.wish.Rebuild, d.wish.Restart = unlessNull(d.wish.Rebuild, d.was.Rebuild), unlessNull(d.wish.Restart, d.was.Restart)
}

// raise returns a counter of the state, raised by one for a change that is certain, and unknown for one that is not.
func raise(counter int64, by change) decide.Value[int64] {
	switch by {
	case differs:
		counter++
	case unclear:
		return decide.Unknown[int64]()
	case same:
	}
	return decide.Known(counter)
}

// afterColon ends a sentence with a reason, if there is one.
func afterColon(reason string) string {
	if reason == "" {
		return "."
	}
	return ": " + strings.TrimSuffix(reason, ".") + "."
}
