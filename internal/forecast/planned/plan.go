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

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/forecast"
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
		return nil, fmt.Errorf("this is not a plan in JSON: %w. Write one with: terraform plan -out=saved && terraform show -json saved > plan.json", err)
	}
	if len(plan.ResourceChanges) == 0 && plan.PlannedValues == nil {
		return nil, errors.New("this is the JSON of a state or of something else, not of a plan. Write one with: terraform plan -out=saved && terraform show -json saved > plan.json")
	}
	r := &reader{plan: &plan, blocks: blocksOf(plan.Config), machines: map[string]*forecast.Machine{}, notes: map[string]int{}}
	provider, err := r.provider()
	if err != nil {
		return nil, err
	}
	r.settings = provider
	for _, c := range plan.ResourceChanges {
		r.add(c)
	}
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

// reader is a plan at reading.
type reader struct {
	plan     *tfjson.Plan
	blocks   blocks
	settings Provider
	steps    []*planned
	machines map[string]*forecast.Machine // by the UUID or name of the node, or the address of the host
	notes    map[string]int
	order    []string
}

// planned is a step with what is needed to find its place in the graph.
type planned struct {
	forecast.Step
	change *tfjson.ResourceChange
	index  int
}

// note remembers what the forecast assumes.
func (r *reader) note(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if r.notes[text]++; r.notes[text] == 1 {
		r.order = append(r.order, text)
	}
}

// add adds the steps of a change. A replacement has two, in either order.
func (r *reader) add(c *tfjson.ResourceChange) {
	if c.Mode != tfjson.ManagedResourceMode || c.Change == nil {
		return
	}
	a := c.Change.Actions
	if a.Delete() || a.Replace() {
		r.step(c, true)
	}
	if a.Create() || a.Update() || a.Replace() {
		r.step(c, false)
	}
}

// step adds a step.
func (r *reader) step(c *tfjson.ResourceChange, removes bool) {
	s := &planned{Step: forecast.Step{Address: c.Address, Removes: removes}, change: c, index: len(r.steps)}
	r.steps = append(r.steps, s)
	before, after := valuesOf(c.Change.Before), valuesOf(c.Change.After)
	unknown := valuesOf(c.Change.AfterUnknown)
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

// values are the attributes of an object.
type values map[string]any

func valuesOf(v any) values {
	m, _ := v.(map[string]any)
	return m
}

func (v values) text(name string) string {
	text, _ := v[name].(string)
	return text
}

func (v values) number(name string) int {
	switch n := v[name].(type) {
	case float64:
		return int(n)
	case json.Number:
		i, _ := n.Int64()
		return int(i)
	}
	return 0
}

// isUnknown reports whether an attribute is not known before the apply, all of it or a part.
func (v values) isUnknown(name string) bool { return holds(v[name]) }

// holds reports whether a value of after_unknown has true in it.
func holds(v any) bool {
	switch v := v.(type) {
	case bool:
		return v
	case map[string]any:
		for _, one := range v {
			if holds(one) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, holds)
	}
	return false
}

// differs reports whether an attribute changes.
func (v values) differs(after, unknown values, name string) bool {
	a, _ := json.Marshal(v[name])
	b, _ := json.Marshal(after[name])
	return string(a) != string(b) || unknown.isUnknown(name)
}

// raises reports whether a counter rises, and whether it may only.
func raises(before, after, unknown values, counter string) (rises, mayBe bool) {
	if unknown.isUnknown(counter) {
		return true, true
	}
	return after.number(counter) > before.number(counter), false
}

// nodeOf returns the machine with a UUID or a name.
func (r *reader) nodeOf(ref string) *forecast.Machine {
	m := r.machines[ref]
	if m == nil {
		m = &forecast.Machine{}
		m.ID, m.Name = ref, ref
		r.machines[ref] = m
	}
	return m
}

// describe fills in what the values of a host say of its machine.
func describe(m *forecast.Machine, host values) {
	m.Name = cmp.Or(host.text("name"), m.Name)
	m.Class = cmp.Or(host.text("resource_class"), m.Class)
	m.ConductorGroup, m.Shard = host.text("conductor_group"), host.text("shard")
	m.BootInterface = valuesOf(host["hardware_interfaces"]).text("boot")
}
