package terraformtest

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/terraformtest/core"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/terraformtest/schema"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/terraformtest/state"
)

// shownChange is a change in the JSON of a plan.
type shownChange struct {
	Actions   []string          `json:"actions"`
	Before    any               `json:"before"`
	After     any               `json:"after"`
	Unknown   any               `json:"after_unknown"`
	Replace   [][]any           `json:"replace_paths,omitempty"`
	Importing map[string]string `json:"importing,omitempty"`
}

// shownResource is a resource in the JSON of a plan or a state.
type shownResource struct {
	Address  string          `json:"address"`
	Before   string          `json:"previous_address,omitempty"` // in changes
	Module   string          `json:"module_address,omitempty"`   // in changes
	Mode     string          `json:"mode"`
	Type     string          `json:"type"`
	Name     string          `json:"name"`
	Index    any             `json:"index,omitempty"`
	Provider string          `json:"provider_name"`
	Version  *int64          `json:"schema_version,omitempty"`
	Values   any             `json:"values,omitempty"`
	Hidden   json.RawMessage `json:"sensitive_values,omitempty"`
	Change   *shownChange    `json:"change,omitempty"`
	Tainted  bool            `json:"tainted,omitempty"`
	After    []string        `json:"depends_on,omitempty"`
	Identity json.RawMessage `json:"identity,omitempty"`
}

// shownOutput is an output in the JSON of a plan.
type shownOutput struct {
	Sensitive bool            `json:"sensitive"`
	Type      json.RawMessage `json:"type,omitempty"`
	Value     any             `json:"value,omitempty"`
}

// shown describes an instance.
func shown(from schema.Providers, at state.Address) (shownResource, *schema.Kind) {
	module, of, name := state.Split(at.Resource)
	p, kind := from.Kind(of)
	one := shownResource{Address: at.String(), Module: module, Mode: "managed", Type: kind.Name, Name: name, Provider: p.Source}
	if key := at.KeyValue(); key != cty.NilVal {
		one.Index = known(key)
	}
	if kind.IsData {
		one.Mode = "data"
	}
	return one, kind
}

// withValues adds the values of an instance.
func (s shownResource) withValues(kind *schema.Kind, value cty.Value) shownResource {
	s.Version, s.Values, s.Hidden = &kind.Version, known(value), json.RawMessage("{}")
	return s
}

// json prints a plan as "show -json" does, without the configuration, the prior state, and what says which values are sensitive.
func (p *plan) json() ([]byte, error) {
	changes, planned := []shownResource{}, []shownResource{}
	for _, c := range p.sorted() {
		one, kind := shown(p.workspace.Providers, c.at)
		if c.action != remove {
			planned = append(planned, one.withValues(kind, c.planned))
		}
		one.Change, one.Before = c.shown(), c.movedFrom
		changes = append(changes, one)
	}
	outputs, values := map[string]*shownChange{}, map[string]shownOutput{}
	for name, o := range p.outputs {
		outputs[name] = o.shown()
		if o.after == cty.NilVal {
			continue
		}
		one := shownOutput{Sensitive: o.sensitive}
		if o.after.IsWhollyKnown() {
			of, err := ctyjson.MarshalType(o.after.Type())
			if err != nil {
				return nil, err
			}
			one.Type, one.Value = of, known(o.after)
		}
		values[name] = one
	}
	return json.Marshal(map[string]any{
		"format_version": "1.2", "terraform_version": core.Version, "resource_changes": changes, "output_changes": outputs,
		"planned_values": map[string]any{"outputs": values, "root_module": moduleJSON("", planned)},
		"errored":        p.failed, "applyable": !p.failed && !p.isEmpty(), "complete": !p.failed && len(p.options.targets) == 0,
		"timestamp": p.started.UTC().Format(time.RFC3339),
	})
}

// shown describes a change of an instance.
func (c *change) shown() *shownChange {
	before := c.kind.Null()
	if c.before != nil {
		before = c.before.Value
	}
	one := &shownChange{Actions: []string{string(c.action)}, Before: known(before), After: known(c.planned), Unknown: unknown(c.planned)}
	if c.action == replace {
		one.Actions = []string{string(remove), string(create)}
	}
	if c.importing != "" {
		one.Importing = map[string]string{"id": c.importing}
	}
	if one.Unknown == nil {
		one.Unknown = map[string]any{}
	}
	for _, path := range c.mustReplace {
		var steps []any
		for _, step := range path {
			switch step := step.(type) {
			case cty.GetAttrStep:
				steps = append(steps, step.Name)
			case cty.IndexStep:
				steps = append(steps, known(step.Key))
			}
		}
		one.Replace = append(one.Replace, steps)
	}
	return one
}

// shown describes a change of an output.
func (o plannedOutput) shown() *shownChange {
	one := &shownChange{Before: known(o.before), After: known(o.after), Unknown: unknown(o.after)}
	if o.after == cty.NilVal || o.after.IsWhollyKnown() {
		one.Unknown = false
	}
	switch {
	case o.same():
		one.Actions = []string{string(noOp)}
	case o.before == cty.NilVal:
		one.Actions = []string{string(create)}
	case o.after == cty.NilVal:
		one.Actions = []string{string(remove)}
	default:
		one.Actions = []string{string(update)}
	}
	return one
}

// known returns what is known of a value: unknown attributes are missing, unknown elements null.
func known(value cty.Value) any {
	if value == cty.NilVal || !core.IsThere(value) {
		return nil
	}
	value, _ = value.Unmark()
	of := value.Type()
	switch {
	case of.IsObjectType(), of.IsMapType():
		made := map[string]any{}
		for it := value.ElementIterator(); it.Next(); {
			key, element := it.Element()
			if element.IsKnown() {
				made[key.AsString()] = known(element)
			}
		}
		return made
	case of.IsListType(), of.IsSetType(), of.IsTupleType():
		made := []any{}
		for it := value.ElementIterator(); it.Next(); {
			_, element := it.Element()
			made = append(made, known(element))
		}
		return made
	}
	text, err := ctyjson.Marshal(value, of)
	if err != nil {
		panic(err)
	}
	return json.RawMessage(text)
}

// unknown returns true in place of what is unknown of a value; nil if all is known.
func unknown(value cty.Value) any {
	if value == cty.NilVal {
		return nil
	}
	value, _ = value.Unmark()
	of := value.Type()
	switch {
	case !value.IsKnown():
		return true
	case value.IsNull():
		return nil
	case of.IsObjectType(), of.IsMapType():
		made := map[string]any{}
		for it := value.ElementIterator(); it.Next(); {
			key, element := it.Element()
			if part := unknown(element); part != nil {
				made[key.AsString()] = part
			}
		}
		return made
	case of.IsListType(), of.IsSetType(), of.IsTupleType():
		made := []any{}
		for it := value.ElementIterator(); it.Next(); {
			_, element := it.Element()
			if part := unknown(element); part != nil {
				made = append(made, part)
			} else {
				made = append(made, false)
			}
		}
		return made
	}
	return nil
}

// stateJSON prints a state as "show -json" does, with what data sources have returned.
func stateJSON(s *state.State, data map[state.Address]cty.Value, from schema.Providers) ([]byte, error) {
	all := []shownResource{}
	for _, at := range slices.SortedFunc(maps.Keys(data), state.Compare) {
		one, kind := shown(from, at)
		all = append(all, one.withValues(kind, data[at]))
	}
	for _, at := range slices.SortedFunc(maps.Keys(s.Instances), state.Compare) {
		one, kind := shown(from, at)
		i := s.Instances[at]
		value, err := i.ValueOf(kind)
		if err != nil {
			return nil, err
		}
		one = one.withValues(kind, value)
		one.Tainted, one.After = i.Tainted, i.After
		if i.Identity != nil {
			if one.Identity, err = state.IdentityJSON(i.Identity.IdentityData); err != nil {
				return nil, err
			}
		}
		all = append(all, one)
	}
	return json.Marshal(map[string]any{
		"format_version": "1.0", "terraform_version": core.Version,
		"values": map[string]any{"outputs": s.Outputs, "root_module": moduleJSON("", all)},
	})
}

// moduleJSON describes the resources of a module and of those below it.
func moduleJSON(module string, all []shownResource) map[string]any {
	own, below := []shownResource{}, map[string][]shownResource{} // by module
	for _, one := range all {
		if one.Module == module {
			one.Module = ""
			own = append(own, one)
			continue
		}
		name, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(one.Module, module), ".")[len("module."):], ".")
		child := strings.TrimPrefix(module+".module."+name, ".")
		below[child] = append(below[child], one)
	}
	made := map[string]any{"resources": own}
	if module != "" {
		made["address"] = module
	}
	var children []any
	for _, child := range slices.Sorted(maps.Keys(below)) {
		children = append(children, moduleJSON(child, below[child]))
	}
	if children != nil {
		made["child_modules"] = children
	}
	return made
}
