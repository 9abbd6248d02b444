package simulate_test

import (
	"slices"
	"strings"
	"sync/atomic"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/zclconf/go-cty/cty"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/terraformtest/core"
)

// execute applies a plan. It reports whether something has failed.
func (w *workspace) execute(p *process, made *plan, config configuration) (failed bool) {
	var wrong atomic.Bool
	removals, writes := map[string]*core.Step{}, map[string]*core.Step{}
	var all []*core.Step
	add := func(to map[string]*core.Step, c *change, do func(*change) error) {
		s := &core.Step{Name: c.address, Run: func() bool {
			if p.isDead() || p.ctx.Err() != nil { // killed, or stopped by the user: nothing new is begun
				return false
			}
			err := do(c)
			if err != nil {
				wrong.Store(true)
			}
			return err == nil
		}}
		to[c.address] = s
		all = append(all, s)
	}
	for _, c := range made.changes {
		if c.action == remove || c.action == replace {
			add(removals, c, func(c *change) error { return w.remove(p, c) })
		}
		if c.action == create || c.action == update || c.action == replace {
			add(writes, c, func(c *change) error { return w.write(p, c, config[c.address], made) })
		}
	}
	for address, c := range made.changes {
		w.order(c, removals[address], writes[address], removals, writes)
	}
	walk(all)
	return wrong.Load() || p.ctx.Err() != nil
}

// order lets the steps of a change wait for others: writes for what they refer to, for the removal of what they referred to and of what
// referred to them, and removals for the removal of what refers to them.
func (w *workspace) order(c *change, removal, write *core.Step, removals, writes map[string]*core.Step) {
	var before []string
	if c.refreshed != nil {
		before = c.refreshed.after
	}
	for _, on := range before {
		if removal != nil && removals[on] != nil {
			removals[on].After = append(removals[on].After, removal)
		}
		if removal != nil && writes[on] != nil {
			writes[on].After = append(writes[on].After, removal)
		}
		if write != nil && removals[on] != nil {
			write.After = append(write.After, removals[on])
		}
	}
	if write == nil {
		return
	}
	if removal != nil {
		write.After = append(write.After, removal)
	}
	for _, on := range c.after {
		if writes[on] != nil {
			write.After = append(write.After, writes[on])
		}
	}
}

// remove destroys an instance.
func (w *workspace) remove(p *process, c *change) error {
	prior, none := c.refreshed, encode(c.kind.kind, cty.NullVal(c.kind.kind))
	resp, err := rpc(p, p.server.ApplyResourceChange, &tfprotov6.ApplyResourceChangeRequest{
		TypeName: kindName(c.address), PriorState: encode(c.kind.kind, prior.value), PlannedState: none, Config: none,
		PlannedPrivate: c.private, PlannedIdentity: prior.identity,
	})
	if err != nil {
		return err
	}
	failed, left := p.said(c.address, resp.Diagnostics), p.decode(c.address, c.kind, resp.NewState, resp.Private)
	switch {
	case failed && left.IsNull(): // Terraform keeps what was there
	case left.IsNull():
		w.set(c.address, nil)
	default:
		w.set(c.address, &instance{
			value: left, private: resp.Private, identity: resp.NewIdentity, tainted: prior.tainted,
			after: prior.after,
		})
	}
	if !failed && !left.IsNull() {
		w.site.broken("%s: %s: a deletion without an error has left something", p.run, c.address)
	}
	if failed {
		return errFailed
	}
	return nil
}

// write creates or updates an instance, as planned.
func (w *workspace) write(p *process, c *change, settings object, made *plan) error {
	prior, of := w.state()[c.address], c.kind
	if c.action != update {
		prior = nil
	}
	now := w.state()
	configured := valueOf(of.kind, settings, func(r reference) cty.Value {
		if strings.HasPrefix(r.address, dataPrefix) {
			return made.planned(r)
		}
		return now[r.address].value.GetAttr(r.attribute)
	})
	again := &change{address: c.address, kind: of}
	planned, err := w.ask(p, again, prior, configured)
	if err != nil {
		return err
	}
	if text := core.Incompatible(c.address, c.planned, again.planned); text != "" {
		w.site.broken("%s: the plan was another at the apply: %s", p.run, text)
	}
	if len(planned.RequiresReplace) > 0 && prior != nil {
		w.site.broken("%s: %s: an update has become a replacement at the apply", p.run, c.address)
	}
	before := cty.NullVal(of.kind)
	if prior != nil {
		before = prior.value
	}
	if prior != nil && again.planned.RawEquals(before) {
		return nil // what it refers to has not changed after all
	}
	resp, err := rpc(p, p.server.ApplyResourceChange, &tfprotov6.ApplyResourceChangeRequest{
		TypeName: kindName(c.address), Config: encode(of.kind, configured), PriorState: encode(of.kind, before),
		PlannedState:   encode(of.kind, again.planned),
		PlannedPrivate: planned.PlannedPrivate, PlannedIdentity: planned.PlannedIdentity,
	})
	if err != nil {
		return err
	}
	return w.record(p, c, prior, again.planned, resp)
}

// record keeps what a creation or update has returned, as Terraform does.
func (w *workspace) record(p *process, c *change, prior *instance, planned cty.Value, resp *tfprotov6.ApplyResourceChangeResponse) error {
	failed, value := p.said(c.address, resp.Diagnostics), p.decode(c.address, c.kind, resp.NewState, resp.Private)
	made := &instance{
		value: value, private: resp.Private, identity: resp.NewIdentity, tainted: failed && prior == nil,
		after: slices.Clone(c.after),
	}
	switch {
	case value.IsNull() && failed: // Terraform keeps what was there
	case value.IsNull():
		w.site.broken("%s: %s: no state and no error", p.run, c.address)
	case !value.IsWhollyKnown():
		w.site.broken("%s: %s: unknown values after the apply: %#v", p.run, c.address, value)
	default:
		w.set(c.address, made)
	}
	if text := core.Incompatible(c.address, planned, value); !failed && text != "" {
		w.site.broken("%s: inconsistent result after apply: %s", p.run, text)
	}
	if made.tainted && !value.IsNull() {
		w.site.tell("%s: %s is tainted", p.run, c.address)
		if p.ctx.Err() != nil && !p.isDead() && w.site.fault == nil {
			w.site.broken("%s: Ctrl-C has tainted %s", p.run, c.address)
		}
	}
	if failed {
		return errFailed
	}
	return nil
}
