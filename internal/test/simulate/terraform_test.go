package simulate_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/zclconf/go-cty/cty"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/terraformtest/core"
)

// death says when a run is killed.
type death struct {
	moment int  // at which moment of the apply, counted from 1; 0: never
	after  bool // after a request was executed
	lost   bool // what the apply has saved will be lost
}

// outcome is how a run has ended.
type outcome struct {
	plan           *plan
	killed, failed bool
	refused        bool // it has failed only because machines were not started
}

// longestApply is more than any apply needs.
const longestApply = 24 * time.Hour

// apply plans and applies a configuration, as terraform apply does.
func (w *workspace) apply(t *testing.T, config configuration, when death) outcome {
	t.Helper()
	return w.applyIn(t, config, trouble{kill: when.moment, after: when.after, lost: when.lost, byMoment: !*everything})
}

// applyIn is apply while something happens.
func (w *workspace) applyIn(t *testing.T, config configuration, d trouble) outcome {
	t.Helper()
	w.runs++
	w.save()
	run := fmt.Sprintf("%s/%d", w.name, w.runs)
	p := w.site.start(t, run, w.block, 0, false, w.logs)
	made := w.plan(p, config)
	p.close()
	w.site.tell("%s: plan: %s", run, made)
	if made.failed {
		return outcome{plan: made, failed: true}
	}
	for address, c := range made.changes { // what the refresh has found is in the state from here on
		if c.refreshed != w.state()[address] {
			w.set(address, c.refreshed)
		}
	}
	w.imports = nil
	if made.empty() {
		return outcome{plan: made}
	}
	p = w.site.start(t, run, w.block, d.kill, d.after, w.logs)
	p.killVerb = d.at
	if d.byMoment {
		p.moments = &moments{saved: w.saves(), lost: d.lost}
	}
	if d.stop > 0 {
		defer time.AfterFunc(d.stop, func() {
			w.site.tell("%s: Ctrl-C", run)
			p.stop()
		}).Stop()
	}
	endless := time.AfterFunc(longestApply, func() {
		w.site.broken("%s: the apply does not end", run)
		p.end()
	})
	w.begin(made)
	failed := w.execute(p, made, config)
	w.begin(nil)
	endless.Stop()
	refused := failed && !p.broke.Load() && p.ctx.Err() == nil
	p.close()
	if w.killed = w.killed || p.killed; p.killed {
		return outcome{plan: made, killed: true}
	}
	w.site.tell("%s: apply ends, failed: %t", run, failed)
	return outcome{plan: made, failed: failed, refused: refused}
}

// replan plans a configuration, and changes nothing.
func (w *workspace) replan(t *testing.T, config configuration) *plan {
	t.Helper()
	p := w.site.start(t, w.name+"/plan", w.block, 0, false, w.logs)
	defer p.close()
	return w.plan(p, config)
}

// action is what a plan does to a resource.
type action string

const (
	keep    action = "no-op"
	create  action = "create"
	update  action = "update"
	replace action = "replace"
	remove  action = "delete"
	forget  action = "gone" // in state, but not in Ironic and not in the configuration
)

// change is the plan of a resource.
type change struct {
	address   string
	kind      kind
	action    action
	refreshed *instance // nil if there is none
	planned   cty.Value
	private   []byte   // planned
	after     []string // of the configuration
	warnings  []string
	ok        bool
}

// plan is a plan of all resources.
type plan struct {
	changes map[string]*change
	failed  bool
}

func (p *plan) empty() bool { return !p.failed && p.text() == "" }

func (p *plan) text() string {
	var all []string
	for _, address := range slices.Sorted(maps.Keys(p.changes)) {
		if c := p.changes[address]; c.action != keep && c.action != forget {
			all = append(all, fmt.Sprintf("%s %s", c.action, address))
		}
	}
	return strings.Join(all, ", ")
}

// planned returns the planned value of a reference.
func (p *plan) planned(r reference) cty.Value {
	return p.changes[r.address].planned.GetAttr(r.attribute)
}

// String describes the plan.
func (p *plan) String() string {
	switch {
	case p.failed:
		return "failed"
	case p.empty():
		return "no changes"
	}
	return p.text()
}

// dependencies returns the addresses that a resource of a configuration refers to, also by way of others, which may not change.
func dependencies(config configuration, address string) (addresses []string) {
	references(config[address], func(r reference) {
		addresses = append(append(addresses, r.address), dependencies(config, r.address)...)
	})
	slices.Sort(addresses)
	return slices.Compact(addresses)
}

// plan refreshes and plans all resources.
func (w *workspace) plan(p *process, config configuration) *plan {
	w.site.census.see(w.site.fake.Nodes())
	now := w.state()
	made := &plan{changes: map[string]*change{}}
	steps := map[string]*core.Step{}
	for address := range config {
		made.changes[address] = &change{address: address, kind: schemas()[kindName(address)], after: dependencies(config, address)}
	}
	for address, i := range now {
		if made.changes[address] == nil {
			made.changes[address] = &change{address: address, kind: schemas()[kindName(address)], after: i.after}
		}
	}
	var mu sync.Mutex
	var all []*core.Step
	for address, c := range made.changes {
		steps[address] = &core.Step{Name: address, Run: func() bool {
			err := w.planOne(p, c, now[address], config[address], made)
			c.ok = err == nil
			mu.Lock()
			defer mu.Unlock()
			made.failed = made.failed || err != nil
			return c.ok
		}}
		all = append(all, steps[address])
	}
	for address, c := range made.changes {
		for _, before := range c.after {
			if _, configured := config[address]; configured {
				steps[address].After = append(steps[address].After, steps[before])
			}
		}
	}
	walk(all)
	return made
}

func kindName(address string) string {
	name, isData := strings.CutPrefix(address, dataPrefix)
	if name = strings.Split(name, ".")[0]; isData {
		return dataPrefix + name
	}
	return name
}

// errFailed says that the provider has reported errors, or that a promise was broken.
var errFailed = fmt.Errorf("failed")

// planOne refreshes and plans one resource.
func (w *workspace) planOne(p *process, c *change, prior *instance, settings object, made *plan) (err error) {
	switch {
	case strings.HasPrefix(c.address, dataPrefix):
		return w.readData(p, c, valueOf(c.kind.kind, settings, made.planned))
	case prior == nil && settings != nil && w.imports[c.address] != "":
		c.refreshed, err = w.importOne(p, c, w.imports[c.address])
	default:
		c.refreshed, err = w.refresh(p, c, prior)
	}
	if err != nil {
		return err
	}
	none := cty.NullVal(c.kind.kind)
	if settings == nil {
		c.action, c.planned = forget, none
		if c.refreshed == nil {
			return nil
		}
		c.action = remove
		_, err = w.ask(p, c, c.refreshed, none)
		return err
	}
	configured := valueOf(c.kind.kind, settings, made.planned)
	w.site.played.addValue(kindName(c.address), configured, true)
	if err = w.validate(p, c, configured); err != nil {
		return err
	}
	from, tainted := c.refreshed, c.refreshed != nil && c.refreshed.tainted
	if tainted {
		from = nil
	}
	answer, err := w.ask(p, c, from, configured)
	if err != nil {
		return err
	}
	switch {
	case from != nil && len(answer.RequiresReplace) > 0:
		c.action = replace
		_, err = w.ask(p, c, &instance{value: none, private: answer.PlannedPrivate}, configured)
	case tainted:
		c.action = replace
	case from == nil:
		c.action = create
	case c.planned.RawEquals(from.value):
		c.action = keep
	default:
		c.action = update
	}
	return err
}

// refresh upgrades and reads an instance. It returns nil if it is gone.
func (w *workspace) refresh(p *process, c *change, i *instance) (*instance, error) {
	if i == nil {
		return nil, nil
	}
	state, err := w.upgrade(p, c, i)
	if err != nil {
		return nil, err
	}
	req := &tfprotov6.ReadResourceRequest{
		TypeName: kindName(c.address), CurrentState: state, Private: i.private,
		CurrentIdentity: i.identity,
	}
	resp, err := rpc(p, p.server.ReadResource, req)
	if err != nil {
		return nil, err
	}
	value := p.decode(c.address, c.kind, resp.NewState, resp.Private)
	if p.said(c.address, resp.Diagnostics) {
		return i, errFailed
	}
	if value.IsNull() {
		w.site.tell("%s: %s is gone", p.run, c.address)
		return nil, nil
	}
	read := &instance{value: value, private: resp.Private, identity: resp.NewIdentity, tainted: i.tainted, after: i.after}
	if value.RawEquals(i.value) && string(resp.Private) == string(i.private) {
		return i, nil
	}
	return read, nil
}

// validated are the configurations that were valid once. Validation needs no Ironic, so it says the same each time.
var validated sync.Map

// validate checks a configuration.
func (w *workspace) validate(p *process, c *change, config cty.Value) error {
	encoded := encode(c.kind.kind, config)
	key := kindName(c.address) + string(encoded.MsgPack)
	if _, known := validated.Load(key); known {
		return nil
	}
	resp, err := rpc(p, p.server.ValidateResourceConfig, &tfprotov6.ValidateResourceConfigRequest{
		TypeName: kindName(c.address), Config: encoded,
		ClientCapabilities: &tfprotov6.ValidateResourceConfigClientCapabilities{WriteOnlyAttributesAllowed: true},
	})
	if err == nil && p.said(c.address, resp.Diagnostics) {
		err = errFailed
	}
	if err == nil && len(resp.Diagnostics) == 0 {
		validated.Store(key, true)
	}
	return err
}

// ask asks the provider for a plan, and checks it as Terraform does. prior is nil for a creation; config is null for a deletion.
func (w *workspace) ask(p *process, c *change, prior *instance, config cty.Value) (*tfprotov6.PlanResourceChangeResponse, error) {
	of := c.kind
	if prior == nil {
		prior = &instance{value: cty.NullVal(of.kind)}
	}
	next := config
	if !config.IsNull() {
		next = core.Proposed(of.attributes, prior.value, config)
	}
	resp, err := rpc(p, p.server.PlanResourceChange, &tfprotov6.PlanResourceChangeRequest{
		TypeName: kindName(c.address), Config: encode(of.kind, config), PriorState: encode(of.kind, prior.value),
		ProposedNewState: encode(of.kind, next),
		PriorPrivate:     prior.private, PriorIdentity: prior.identity,
	})
	if err != nil {
		return nil, err
	}
	c.planned, c.private = p.decode(c.address, of, resp.PlannedState, resp.PlannedPrivate), resp.PlannedPrivate
	failed := p.said(c.address, resp.Diagnostics)
	for _, d := range resp.Diagnostics {
		c.warnings = append(c.warnings, d.Summary+": "+d.Detail)
	}
	if failed {
		return nil, errFailed
	}
	if !config.IsNull() {
		if text := core.InvalidPlan(c.address, of.attributes, prior.value, config, c.planned); text != "" {
			w.site.broken("%s: invalid plan: %s", p.run, text)
		}
	}
	return resp, nil
}
