package planned

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	tfjson "github.com/hashicorp/terraform-json"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/operator/forecast"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/rollout"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/throttle"
)

// reader is a plan at reading.
type reader struct {
	plan     *tfjson.Plan
	blocks   blocks
	settings Provider
	steps    []*planned
	machines map[string]*forecast.Target // by the UUID or name of the node, or the address of the host
	notes    map[string]int
	order    []string
}

// planned is a step with what is needed to find its place in the graph.
type planned struct {
	forecast.Step
	change *tfjson.ResourceChange
	index  int
}

func (r *reader) note(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if r.notes[text]++; r.notes[text] == 1 {
		r.order = append(r.order, text)
	}
}

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
func (r *reader) nodeOf(ref string) *forecast.Target {
	m := r.machines[ref]
	if m == nil {
		m = &forecast.Target{}
		m.ID, m.Name = ref, ref
		r.machines[ref] = m
	}
	return m
}

// describe fills in what the values of a host say of its machine.
func describe(m *forecast.Target, host values) {
	m.Name = cmp.Or(host.text("name"), m.Name)
	m.Class = cmp.Or(host.text("resource_class"), m.Class)
	m.ConductorGroup, m.Shard = host.text("conductor_group"), host.text("shard")
	m.BootInterface = valuesOf(host["hardware_interfaces"]).text("boot")
}

func (r *reader) changeOf(address string) *tfjson.ResourceChange {
	i := slices.IndexFunc(r.plan.ResourceChanges, func(c *tfjson.ResourceChange) bool { return c.Address == address })
	if address == "" || i < 0 {
		return nil
	}
	return r.plan.ResourceChanges[i]
}

// Provider is what the provider block says.
type Provider struct {
	Limit   throttle.Limit
	Rollout rollout.Settings // the defaults for all deployments
	Poll    time.Duration    // poll_interval; zero: not set
	IsMax   bool             // the block sets max_concurrent
	Unknown string           // why provisioning_limit is not known; "": it is
}
