// Package planned reads what a forecast needs from a saved plan of Terraform or OpenTofu, as "show -json" prints it. It is pure.
package planned

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	tfjson "github.com/hashicorp/terraform-json"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/operator/forecast"
)

// Work is what a plan says.
type Work struct {
	Steps    []forecast.Step
	Provider Provider
	Notes    []string // what the plan does not say, and what the forecast assumes
}

// Read reads a plan.
func Read(text []byte) (*Work, error) {
	var plan tfjson.Plan
	if err := json.Unmarshal(text, &plan); err != nil {
		return nil, fmt.Errorf("this is not a plan in JSON: %w. Write one with: terraform plan -out=saved && terraform show -json saved "+
			"> plan.json", err)
	}
	if len(plan.ResourceChanges) == 0 && plan.PlannedValues == nil {
		return nil, errors.New("this is the JSON of a state or of something else, not of a plan. Write one with: terraform plan " +
			"-out=saved && terraform show -json saved > plan.json")
	}
	var end struct {
		Errored bool `json:"errored"`
	}
	if err := json.Unmarshal(text, &end); err != nil || end.Errored {
		return nil, errors.New("this plan has failed, so that it lacks changes. Mend its errors, and plan again")
	}
	r := &reader{plan: &plan, blocks: blocksOf(plan.Config), machines: map[string]*forecast.Target{}, notes: map[string]int{}}
	provider, err := r.provider()
	if err != nil {
		return nil, err
	}
	r.settings = provider
	for _, c := range plan.ResourceChanges {
		r.add(c)
	}
	r.noteUncounted()
	r.link()
	w := &Work{Provider: provider}
	for _, s := range r.steps {
		w.Steps = append(w.Steps, s.Step)
	}
	for _, note := range r.order {
		if n := r.notes[note]; n > 1 {
			note += fmt.Sprintf(" (%d times)", n)
		}
		w.Notes = append(w.Notes, note)
	}
	return w, nil
}

// noteUncounted notes what the plan may do, what it does besides its changes, and what it leaves to a later one.
func (r *reader) noteUncounted() {
	var mayBe []string
	for _, s := range r.steps {
		if s.MayBe {
			mayBe = append(mayBe, s.Address)
		}
	}
	if len(mayBe) > 0 {
		r.note("whether the apply touches the machines of %s is not known before; the longest time counts them", forecast.Few(mayBe))
	}
	for _, action := range r.plan.ActionInvocations {
		if takes, ours := slotOf(action); takes {
			r.note("%s is not counted, though node %s takes a slot for it: the order of actions is not known", action.Address,
				nodeIn(action))
		} else if ours {
			r.note("%s of node %s is not counted: it is an action, and takes no slot", action.Address, nodeIn(action))
		}
	}
	for _, later := range r.plan.DeferredChanges {
		if later.ResourceChange != nil {
			r.note("%s is not counted: the plan defers it", later.ResourceChange.Address)
		}
	}
	if r.plan.Complete != nil && !*r.plan.Complete && len(r.plan.DeferredChanges) == 0 {
		r.note("the plan is not complete, such as one with -target: changes that it leaves out are not counted")
	}
}

// slotOf reports whether an action is one of this provider, and whether its machine takes a slot.
func slotOf(a *tfjson.ActionInvocation) (takes, ours bool) {
	switch a.Type {
	case "metal_clean", "metal_inspect", "metal_service":
		return true, true
	case "metal_power":
		return !strings.HasSuffix(valuesOf(a.ConfigValues).text("action"), "off"), true
	}
	return false, strings.HasPrefix(a.Type, "metal_")
}

func nodeIn(a *tfjson.ActionInvocation) string {
	return cmp.Or(valuesOf(a.ConfigValues).text("node_id"), "(known after apply)")
}

// add adds the steps of a change. A replacement has two, in either order, unless the CLI only drops the old object.
func (r *reader) add(c *tfjson.ResourceChange) {
	if c.Mode != tfjson.ManagedResourceMode || c.Change == nil {
		return
	}
	a := c.Change.Actions
	if a.Delete() || a.Replace() {
		r.step(c, true)
	}
	if a.Update() || slices.Contains(a, tfjson.ActionCreate) {
		r.step(c, false)
	}
}

func (r *reader) step(c *tfjson.ResourceChange, removes bool) {
	s := &planned{Step: forecast.Step{Address: c.Address, Removes: removes}, change: c, index: len(r.steps)}
	r.steps = append(r.steps, s)
	before, after := valuesOf(c.Change.Before), valuesOf(c.Change.After)
	unknown := valuesOf(c.Change.AfterUnknown)
	if slices.Contains(c.Change.Actions, tfjson.ActionForget) {
		before = nil
	}
	switch {
	case !strings.HasPrefix(c.Type, "metal_"):
		return
	case c.Type == "metal_host" && removes:
		s.Does = "remove from Ironic"
	case c.Type == "metal_host":
		r.host(s, before, after, unknown)
	case c.Type == "metal_deployment" && removes:
		r.undeploy(s, before, after)
	case c.Type == "metal_deployment":
		r.deploy(s, before, after, unknown)
	default:
		s.Does = "other"
	}
}
