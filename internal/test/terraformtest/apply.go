package terraformtest

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/terraformtest/core"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/terraformtest/language"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/terraformtest/state"
)

// tally counts what an apply has done.
type tally struct{ imported, added, changed, destroyed int }

// applying is the apply of a plan.
type applying struct {
	*run
	plan  *plan
	data  map[state.Address]cty.Value
	tally tally
}

// apply applies a plan. It returns the state afterwards, with what data sources have returned.
func (w *Workspace) apply(ctx context.Context, p *plan, variables map[string]cty.Value, d *language.Diagnostics,
	out *transcript,
) (*state.State, map[state.Address]cty.Value, tally) {
	r := w.newRun(ctx, p.config, variables, p.options, d, out, p.refreshed, p.started)
	defer r.close()
	r.expanded = maps.Clone(p.expanded)
	a := &applying{run: r, plan: p, data: maps.Clone(p.data)}
	for at, value := range p.data {
		r.setValue(at, value)
	}
	all := a.steps()
	core.Walk(all)
	if r.process.isDead() {
		return r.now, a.data, a.tally
	}
	if ctx.Err() != nil {
		d.Fail("execution halted", "The run was interrupted.")
	}
	a.applyOutputs()
	if !a.HasErrors() {
		a.checkModules()
	}
	return r.now, a.data, a.tally
}

// steps are what an apply does, in order.
func (a *applying) steps() (all []*core.Step) {
	removals, writes := map[string][]*core.Step{}, map[string][]*core.Step{} // by resource
	type pair struct {
		c              *change
		removal, write *core.Step
	}
	var pairs []pair
	for _, c := range a.plan.sorted() {
		step := func(do func(*change) bool) *core.Step {
			s := &core.Step{Name: c.at.String(), Run: func() bool { return a.in(func() bool { return do(c) }) }}
			all = append(all, s)
			return s
		}
		one := pair{c: c}
		switch c.action {
		case remove:
			one.removal = step(a.remove)
		case replace:
			one.removal, one.write = step(a.remove), step(a.write)
		case create, update:
			one.write = step(a.write)
		case read:
			one.write = step(a.read)
		case noOp:
			one.write = step(a.keep)
		}
		if one.removal != nil {
			removals[c.at.Resource] = append(removals[c.at.Resource], one.removal)
		}
		if one.write != nil {
			writes[c.at.Resource] = append(writes[c.at.Resource], one.write)
		}
		pairs = append(pairs, one)
	}
	for _, one := range pairs {
		a.order(one.c, one.removal, one.write, removals, writes)
	}
	return all
}

// order lets the steps of a change wait for others: writes for what they refer to, for the removal of what they referred to and of what
// referred to them, and removals for the removal of what refers to them.
func (a *applying) order(c *change, removal, write *core.Step, removals, writes map[string][]*core.Step) {
	if c.before != nil {
		for _, on := range c.before.After {
			if removal != nil && on != c.at.Resource {
				for _, other := range writes[on] {
					other.After = append(other.After, removal)
				}
			}
			for _, other := range removals[on] {
				if removal != nil {
					other.After = append(other.After, removal)
				}
				if write != nil && on != c.at.Resource {
					write.After = append(write.After, other)
				}
			}
		}
	}
	if write == nil {
		return
	}
	if removal != nil {
		write.After = append(write.After, removal)
	}
	if block := a.c.Resources[c.at.Resource]; block != nil {
		for _, on := range block.Refers {
			write.After = append(write.After, writes[on]...)
		}
	}
}

// keep does nothing with an instance but record its import.
func (a *applying) keep(c *change) bool {
	if c.importing != "" {
		a.recordImport(c)
	}
	a.setValue(c.at, c.before.Value)
	return true
}

func (a *applying) recordImport(c *change) {
	a.output.say("%s: Importing... [id=%s]", c.at, c.importing)
	a.now.Set(c.at, c.before)
	a.output.say("%s: Import complete [id=%s]", c.at, c.importing)
	a.count(&a.tally.imported)
}

func (a *applying) count(n *int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	*n++
}

// read reads a data source that the plan could not read.
func (a *applying) read(c *change) bool {
	block := a.c.Resources[c.at.Resource]
	value, ok := a.evaluate(block.Module, block.Kind, block.Body, c.at, a.each(block, c.at), c.at.String())
	if !ok {
		return false
	}
	value, _ = value.UnmarkDeep()
	if a.server(block.Provider) == nil {
		return false
	}
	made, ok := a.readData(c.at, block, value)
	ok = ok && a.holds(block, c.at, a.each(block, c.at), block.Kind.Marked(made))
	if ok {
		a.setValue(c.at, made)
		a.mu.Lock()
		a.data[c.at] = made
		a.mu.Unlock()
	}
	return ok
}

// each returns each.value of an instance as it is now.
func (a *applying) each(block *language.Resource, at state.Address) cty.Value {
	if block.ForEach == nil {
		return cty.NilVal
	}
	made := map[state.Address]cty.Value{}
	if problem := a.forEach(block.Module, block.ForEach, block.Address, made); problem != nil || made[at] == cty.NilVal {
		return a.expanded[block.Address][at]
	}
	return made[at]
}

// remove destroys an instance.
func (a *applying) remove(c *change) bool {
	block, prior := a.c.Resources[c.at.Resource], c.before
	p, of := a.w.Providers.Kind(state.KindName(c.at.Resource))
	server := a.server(p)
	if server == nil {
		return false
	}
	a.output.say("%s: Destroying...%s", c.at, idOf(prior.Value))
	resp, ok := call(a.run, c.at, block, server.ApplyResourceChange, &tfprotov6.ApplyResourceChangeRequest{
		TypeName: of.Name, PriorState: of.Encode(prior.Value), PlannedState: of.Encode(of.Null()), Config: of.Encode(of.Null()),
		PlannedPrivate: c.private, PlannedIdentity: prior.Identity,
	})
	if resp == nil {
		return false
	}
	left, err := of.Decode(resp.NewState)
	switch {
	case err != nil:
		return a.broken(c.at, "Provider produced invalid object", err.Error())
	case !ok && left.IsNull(): // Terraform keeps what was there
	case left.IsNull():
		a.now.Set(c.at, nil)
		a.count(&a.tally.destroyed)
		a.output.say("%s: Destruction complete after 0s", c.at)
	default:
		a.now.Set(c.at, &state.Instance{
			Value: left, Private: resp.Private, Identity: resp.NewIdentity, Tainted: prior.Tainted,
			After: prior.After, Secrets: prior.Secrets,
		})
	}
	if ok && !left.IsNull() {
		return a.broken(c.at, "Provider produced inconsistent result after apply",
			"The object still exists after a deletion without an error.")
	}
	return ok
}

// write creates or updates an instance, as planned.
func (a *applying) write(c *change) bool {
	block := a.c.Resources[c.at.Resource]
	if c.importing != "" {
		a.recordImport(c)
	}
	var prior *state.Instance
	if c.action == update {
		prior = a.now.Get(c.at)
	}
	configured, secrets, ok := a.validateInstance(block, c.at, a.each(block, c.at))
	if !ok {
		return false
	}
	again := &change{at: c.at, kind: c.kind}
	planned, ok := a.ask(again, block, block.Provider, prior, configured)
	if !ok {
		return false
	}
	if text := core.Incompatible(c.at.String(), c.planned, again.planned); text != "" {
		return a.broken(c.at, "Provider produced inconsistent final plan", text)
	}
	before := c.kind.Null()
	if prior != nil {
		before = prior.Value
	}
	for _, path := range planned.RequiresReplace {
		if prior != nil && !sameAt(ctyPath(path), before, again.planned) {
			return a.broken(c.at, "Provider produced inconsistent final plan", "The plan has changed from update to replace.")
		}
	}
	if prior != nil && again.planned.RawEquals(before) {
		a.setValue(c.at, before)
		return true // what it refers to has not changed after all
	}
	verb := "Creating..."
	if prior != nil {
		verb = "Modifying..." + idOf(before)
	}
	a.output.say("%s: %s", c.at, verb)
	resp, ok := call(a.run, c.at, block, a.server(block.Provider).ApplyResourceChange, &tfprotov6.ApplyResourceChangeRequest{
		TypeName: c.kind.Name, Config: c.kind.Encode(configured), PriorState: c.kind.Encode(before),
		PlannedState:   c.kind.Encode(again.planned),
		PlannedPrivate: planned.PlannedPrivate, PlannedIdentity: planned.PlannedIdentity,
	})
	if resp == nil {
		return false
	}
	if !a.record(c, prior, again.planned, resp, secrets, ok) {
		return false
	}
	return a.holds(block, c.at, a.each(block, c.at), block.Kind.Marked(a.now.Get(c.at).Value))
}

// record keeps what a creation or update has returned, as Terraform does.
func (a *applying) record(c *change, prior *state.Instance, planned cty.Value, resp *tfprotov6.ApplyResourceChangeResponse,
	secrets []cty.Path, ok bool,
) bool {
	value, err := c.kind.Decode(resp.NewState)
	if err != nil {
		return a.broken(c.at, "Provider produced invalid object", err.Error())
	}
	made := &state.Instance{
		Value: value, Private: resp.Private, Identity: resp.NewIdentity, Tainted: !ok && prior == nil,
		After: a.c.Dependencies(a.c.Resources[c.at.Resource]), Secrets: secrets,
	}
	switch {
	case value.IsNull() && !ok: // Terraform keeps what was there
		return false
	case value.IsNull():
		return a.broken(c.at, "Provider produced inconsistent result after apply", "Root object was present, but now absent.")
	case !ok:
		made.Value = cty.UnknownAsNull(value)
	case !value.IsWhollyKnown():
		return a.broken(c.at, "Provider returned invalid result object after apply",
			fmt.Sprintf("After the apply operation, the provider still indicated an unknown value: %#v", value))
	}
	a.now.Set(c.at, made)
	a.setValue(c.at, made.Value)
	if !ok {
		return false
	}
	if text := core.Incompatible(c.at.String(), planned, value); text != "" {
		return a.broken(c.at, "Provider produced inconsistent result after apply", text)
	}
	if prior == nil {
		a.output.say("%s: Creation complete after 0s%s", c.at, idOf(value))
		a.count(&a.tally.added)
	} else {
		a.output.say("%s: Modifications complete after 0s%s", c.at, idOf(value))
		a.count(&a.tally.changed)
	}
	return true
}

// applyOutputs records the outputs. Those that refer to what has failed are kept.
func (a *applying) applyOutputs() {
	if a.plan.options.destroy {
		if len(a.now.Instances) == 0 || !a.HasErrors() {
			a.now.Outputs = map[string]state.Output{}
		}
		return
	}
	for name := range a.now.Outputs {
		if a.c.Outputs[name] == nil {
			delete(a.now.Outputs, name)
		}
	}
	for name, o := range a.c.Outputs {
		value, problems := a.expression(a.c.Module, o.Value)
		value, _ = value.UnmarkDeep()
		if problems.HasErrors() || !value.IsWhollyKnown() {
			if !a.HasErrors() {
				a.AddHCL("", problems)
			}
			continue
		}
		if value.IsNull() {
			delete(a.now.Outputs, name)
			continue
		}
		of, err := ctyjson.MarshalType(value.Type())
		text, wrong := ctyjson.Marshal(value, value.Type())
		if err != nil || wrong != nil {
			a.Fail("Invalid output", "%v %v", err, wrong)
			continue
		}
		a.now.Outputs[name] = state.Output{Value: json.RawMessage(text), Type: json.RawMessage(of), Sensitive: o.Sensitive}
	}
}
