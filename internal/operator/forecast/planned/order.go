package planned

import (
	"slices"

	tfjson "github.com/hashicorp/terraform-json"
)

// link lets the steps wait for each other, as Terraform's graph does: writes for what they refer to and for removals, removals for the
// removal of what refers to them (reference/rollout.md#replacements).
func (r *reader) link() {
	prior := r.priorDependencies()
	removals, writes := map[string][]*planned{}, map[string][]*planned{} // by the address of the block
	for _, s := range r.steps {
		resource := resourceOf(s.Address)
		if s.Removes {
			removals[resource] = append(removals[resource], s)
		} else {
			writes[resource] = append(writes[resource], s)
		}
	}
	for _, s := range r.steps {
		resource := resourceOf(s.Address)
		own := ofInstance(removals[resource], s.Address)
		for _, on := range r.dependencies(s.change, prior) {
			if on.resource == resource {
				continue
			}
			if s.Removes {
				for _, other := range removals[on.resource] {
					other.await(s)
				}
				for _, other := range writes[on.resource] {
					if !other.isFirst() {
						other.await(s)
					}
				}
				continue
			}
			for _, other := range among(writes[on.resource], on.instance) {
				s.await(other)
			}
			if own == nil || !s.isFirst() {
				for _, other := range removals[on.resource] {
					if !other.isFirst() {
						s.await(other)
					}
				}
			}
		}
		if own != nil && !s.Removes {
			if s.isFirst() {
				own.await(s)
			} else {
				s.await(own)
			}
		}
	}
}

// isFirst reports whether the new object is made before the old one is destroyed.
func (p *planned) isFirst() bool { return p.change.Change.Actions.CreateBeforeDestroy() }

// await lets a step wait for another one, unless that waits for it.
func (p *planned) await(other *planned) {
	if p != other && !slices.Contains(p.After, other.index) && !slices.Contains(other.After, p.index) {
		p.After = append(p.After, other.index)
	}
}

func ofInstance(all []*planned, address string) *planned {
	for _, one := range all {
		if one.Address == address {
			return one
		}
	}
	return nil
}

// among returns the steps of an instance; of all if none is named.
func among(all []*planned, instance string) []*planned {
	if instance == "" {
		return all
	}
	if one := ofInstance(all, instance); one != nil {
		return []*planned{one}
	}
	return nil
}

// dependencies returns what an instance refers to: in the configuration, or in the state if it is not configured any more. It follows what
// has no step of its own.
func (r *reader) dependencies(c *tfjson.ResourceChange, prior map[string][]string) (all []reference) {
	seen := map[string]bool{}
	var follow func(b *block)
	follow = func(b *block) {
		for _, on := range b.all() {
			if on.unclear != "" {
				if !seen[on.unclear] {
					r.note("a plan does not say what %s refers to; steps that use it are not counted as waiting for it", on.unclear)
				}
				seen[on.unclear] = true
				continue
			}
			key := on.resource + " " + on.instance
			if seen[key] {
				continue
			}
			seen[key] = true
			all = append(all, on)
			if next := r.blocks[on.resource]; next != nil {
				follow(next)
			}
		}
	}
	if b := r.blocks.of(c); b != nil {
		follow(b)
	}
	for _, on := range prior[c.Address] {
		if key := on + " "; !seen[key] && c.Change.Before != nil {
			seen[key] = true
			all = append(all, reference{resource: resourceOf(on)})
		}
	}
	return all
}

func (r *reader) priorDependencies() map[string][]string {
	all := map[string][]string{}
	var walk func(m *tfjson.StateModule)
	walk = func(m *tfjson.StateModule) {
		if m == nil {
			return
		}
		for _, one := range m.Resources {
			all[one.Address] = one.DependsOn
		}
		for _, child := range m.ChildModules {
			walk(child)
		}
	}
	if r.plan.PriorState != nil && r.plan.PriorState.Values != nil {
		walk(r.plan.PriorState.Values.RootModule)
	}
	return all
}
