package terraformtest

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"
)

// json prints a plan as "show -json" does, as far as this package knows it: the changes of resources and outputs.
func (p *plan) json() ([]byte, error) {
	type shown struct {
		Actions   []string `json:"actions"`
		Before    any      `json:"before"`
		After     any      `json:"after"`
		Unknown   any      `json:"after_unknown"`
		Importing any      `json:"importing,omitempty"`
		Replace   []any    `json:"replace_paths,omitempty"`
	}
	type resourceChange struct {
		Address  string `json:"address"`
		Mode     string `json:"mode"`
		Type     string `json:"type"`
		Name     string `json:"name"`
		Index    any    `json:"index,omitempty"`
		Provider string `json:"provider_name"`
		Change   shown  `json:"change"`
	}
	all := []resourceChange{}
	for _, c := range p.sorted() {
		before := c.kind.Null()
		if c.before != nil {
			before = c.before.Value
		}
		one := resourceChange{
			Address: c.at.String(), Mode: "managed", Type: c.kind.name, Name: c.at.resource[strings.LastIndex(c.at.resource, ".")+1:],
			Change: shown{Actions: []string{string(c.action)}, Before: known(before), After: known(c.planned), Unknown: unknown(c.planned)},
		}
		if key := c.at.value(); key != cty.NilVal {
			one.Index = known(key)
		}
		if c.action == replace {
			one.Change.Actions = []string{"delete", "create"}
		}
		if c.kind.isData {
			one.Mode = "data"
		}
		if c.importing != "" {
			one.Change.Importing = map[string]string{"id": c.importing}
		}
		if one.Change.Unknown == nil {
			one.Change.Unknown = map[string]any{}
		}
		all = append(all, one)
	}
	outputs := map[string]shown{}
	for name, o := range p.outputs {
		one := shown{Actions: []string{"no-op"}, Before: known(o.before), After: known(o.after), Unknown: unknown(o.after)}
		switch {
		case o.same():
		case o.before == cty.NilVal:
			one.Actions = []string{"create"}
		case o.after == cty.NilVal:
			one.Actions = []string{"delete"}
		default:
			one.Actions = []string{"update"}
		}
		outputs[name] = one
	}
	return json.Marshal(map[string]any{"format_version": "1.2", "terraform_version": Version, "resource_changes": all, "output_changes": outputs, "errored": p.failed, "applyable": !p.isEmpty()})
}

// known returns what is known of a value: unknown attributes are missing, unknown elements null.
func known(value cty.Value) any {
	if value == cty.NilVal || !isThere(value) {
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

// json prints a state as "show -json" does, without data sources.
func (s *state) json(w *Workspace) ([]byte, error) {
	type shown struct {
		Address  string          `json:"address"`
		Mode     string          `json:"mode"`
		Type     string          `json:"type"`
		Name     string          `json:"name"`
		Index    any             `json:"index,omitempty"`
		Provider string          `json:"provider_name"`
		Version  int64           `json:"schema_version"`
		Values   any             `json:"values"`
		Hidden   json.RawMessage `json:"sensitive_values"`
		Tainted  bool            `json:"tainted,omitempty"`
		After    []string        `json:"depends_on,omitempty"`
		Identity json.RawMessage `json:"identity,omitempty"`
	}
	all := []shown{}
	for _, at := range slices.SortedFunc(maps.Keys(s.instances), compareAddresses) {
		p, kind := w.kind(kindName(at.resource))
		i := s.instances[at]
		value, err := i.value(kind)
		if err != nil {
			return nil, err
		}
		one := shown{
			Address: at.String(), Mode: "managed", Type: kind.name, Name: at.resource[strings.LastIndex(at.resource, ".")+1:], Provider: p.Source, Version: kind.Version,
			Values: known(value), Hidden: json.RawMessage("{}"), Tainted: i.Tainted, After: i.After,
		}
		if key := at.value(); key != cty.NilVal {
			one.Index = known(key)
		}
		if i.Identity != nil {
			if one.Identity, err = identityJSON(i.Identity.IdentityData); err != nil {
				return nil, err
			}
		}
		all = append(all, one)
	}
	return json.Marshal(map[string]any{"format_version": "1.0", "terraform_version": Version, "values": map[string]any{"outputs": s.outputs, "root_module": map[string]any{"resources": all}}})
}
