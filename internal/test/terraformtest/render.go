package terraformtest

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/zclconf/go-cty/cty"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/terraformtest/core"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/terraformtest/schema"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/terraformtest/state"
)

// text prints a plan much as a CLI does.
func (p *plan) text() string {
	var out strings.Builder
	if p.isEmpty() {
		if p.options.refreshOnly {
			return "\nNo changes. Your infrastructure still matches the configuration.\n"
		}
		if p.options.destroy {
			return "\nNo changes. No objects need to be destroyed.\n"
		}
		return "\nNo changes. Your infrastructure matches the configuration.\n"
	}
	if p.options.refreshOnly {
		p.printDrift(&out)
	} else {
		p.printLegend(&out)
	}
	n := p.count()
	for _, c := range p.sorted() {
		c.print(&out)
	}
	if !p.options.refreshOnly {
		imported := ""
		if n.imported > 0 {
			imported = fmt.Sprintf("%d to import, ", n.imported)
		}
		fmt.Fprintf(&out, "Plan: %s%d to add, %d to change, %d to destroy.\n", imported, n.added, n.changed, n.destroyed)
	}
	p.printOutputs(&out)
	return out.String()
}

// printLegend prints the meaning of the signs.
func (p *plan) printLegend(out *strings.Builder) {
	out.WriteString("\nTerraform used the selected providers to generate the following execution plan. Resource actions are indicated " +
		"with the following symbols:\n")
	for _, one := range []struct {
		action action
		text   string
	}{
		{create, "  + create"},
		{update, "  ~ update in-place"},
		{remove, "  - destroy"},
		{replace, "-/+ destroy and then create replacement"},
		{read, " <= read (data resources)"},
	} {
		if slices.ContainsFunc(p.sorted(), func(c *change) bool { return c.action == one.action }) {
			out.WriteString(one.text + "\n")
		}
	}
	out.WriteString("\nTerraform will perform the following actions:\n\n")
}

// count counts what a plan does.
func (p *plan) count() (n tally) {
	for _, c := range p.sorted() {
		if c.importing != "" {
			n.imported++
		}
		switch c.action {
		case create:
			n.added++
		case update:
			n.changed++
		case replace:
			n.added++
			n.destroyed++
		case remove:
			n.destroyed++
		case noOp, read:
		}
	}
	return n
}

// printDrift prints what a refresh has found.
func (p *plan) printDrift(out *strings.Builder) {
	out.WriteString("\nNote: Objects have changed outside of Terraform\n\n")
	for _, at := range slices.SortedFunc(maps.Keys(p.previous.Instances), state.Compare) {
		_, kind := p.workspace.Providers.Kind(state.KindName(at.Resource))
		before, after := p.previous.Instances[at].Decoded(kind), p.refreshed.Instances[at].Decoded(kind)
		if after == nil {
			fmt.Fprintf(out, "  # %s has been deleted\n", at)
			continue
		}
		if !before.Value.RawEquals(after.Value) {
			fmt.Fprintf(out, "  # %s has changed\n", at)
			printAttributes(out, 4, kind.Attributes, before.Value, after.Value, nil)
		}
	}
	out.WriteString("\n")
}

func (p *plan) printOutputs(out *strings.Builder) {
	if !p.changesOutputs() {
		return
	}
	out.WriteString("\nChanges to Outputs:\n")
	for _, name := range slices.Sorted(maps.Keys(p.outputs)) {
		o := p.outputs[name]
		switch {
		case o.same():
		case o.sensitive:
			fmt.Fprintf(out, "  ~ %s = (sensitive value)\n", name)
		case o.before == cty.NilVal:
			fmt.Fprintf(out, "  + %s = %s\n", name, text(o.after, 6))
		case o.after == cty.NilVal:
			fmt.Fprintf(out, "  - %s = %s -> null\n", name, text(o.before, 6))
		default:
			fmt.Fprintf(out, "  ~ %s = %s -> %s\n", name, text(o.before, 6), text(o.after, 6))
		}
	}
}

// print prints a change.
func (c *change) print(out *strings.Builder) {
	if c.action == noOp && c.importing == "" && c.movedFrom == "" {
		return
	}
	titles := map[action]string{
		create: "will be created", update: "will be updated in-place", replace: "must be replaced", remove: "will be destroyed",
		read: "will be read during apply", noOp: "will be imported",
	}
	title, sign := titles[c.action], map[action]string{
		create: "+", update: "~", replace: "-/+", remove: "-", read: "<=",
		noOp: " ",
	}[c.action]
	switch {
	case c.action == replace && c.tainted:
		title = "is tainted, so must be replaced"
	case c.action == replace && c.told && len(c.mustReplace) == 0:
		title = "will be replaced, as requested"
	}
	switch isMove := c.action == noOp && c.importing == ""; {
	case isMove:
		fmt.Fprintf(out, "  # %s has moved to %s\n", c.movedFrom, c.at)
	case c.movedFrom != "":
		fmt.Fprintf(out, "  # %s %s\n  # (moved from %s)\n", c.at, title, c.movedFrom)
	default:
		fmt.Fprintf(out, "  # %s %s\n", c.at, title)
	}
	if c.action == remove && !c.isConfigured {
		fmt.Fprintf(out, "  # (because %s is not in configuration)\n", c.at)
	}
	if c.importing != "" && c.action != noOp {
		fmt.Fprintf(out, "  # (imported from %q)\n", c.importing)
	}
	block := "resource"
	if c.kind.IsData {
		block = "data"
	}
	name := c.at.Resource[strings.LastIndex(c.at.Resource, ".")+1:]
	fmt.Fprintf(out, "%3s %s %q %q {\n", sign, block, c.kind.Name, name)
	before := c.kind.Null()
	if c.before != nil {
		before = c.before.Value
	}
	printAttributes(out, 6, c.kind.Attributes, before, c.planned, c)
	out.WriteString("    }\n\n")
}

// printAttributes prints how the attributes of an object change. Without attributes, none of them is hidden.
func printAttributes(out *strings.Builder, indent int, attributes []*tfprotov6.SchemaAttribute, before, after cty.Value, c *change) {
	of := before.Type()
	byName := map[string]*tfprotov6.SchemaAttribute{}
	for _, a := range attributes {
		byName[a.Name] = a
	}
	unchanged := 0
	for _, name := range slices.Sorted(maps.Keys(of.AttributeTypes())) {
		a := byName[name]
		was, is := core.AttributeOf(before, name), core.AttributeOf(after, name)
		path := cty.GetAttrPath(name)
		replaced := ""
		if c != nil && indent == 6 && slices.ContainsFunc(c.mustReplace, func(p cty.Path) bool { return p.HasPrefix(path) }) {
			replaced = " # forces replacement"
		}
		pad := strings.Repeat(" ", indent)
		hidden := a != nil && (a.Sensitive || a.WriteOnly) || c != nil && indent == 6 &&
			slices.ContainsFunc(c.secrets, func(p cty.Path) bool { return p.HasPrefix(path) })
		switch {
		case was.RawEquals(is):
			switch {
			case (name == "id" || name == "name") && core.IsThere(was) && was.Type() == cty.String:
				fmt.Fprintf(out, "%s  %s = %s\n", pad, name, text(was, indent))
			case a != nil && a.WriteOnly && c != nil && before.IsNull(): // also if nobody has set it
				fmt.Fprintf(out, "%s+ %s = (write-only attribute)\n", pad, name)
			case a != nil && a.WriteOnly, !was.IsNull():
				unchanged++
			}
		case hidden, a != nil && a.NestedType != nil && schema.HasSensitive(a.NestedType.Attributes) &&
			(!is.IsKnown() || a.NestedType.Nesting != tfprotov6.SchemaObjectNestingModeSingle):
			fmt.Fprintf(out, "%s%s %s = (sensitive value)%s\n", pad, signOf(was, is), name, replaced)
		case a != nil && a.NestedType != nil && a.NestedType.Nesting == tfprotov6.SchemaObjectNestingModeSingle && is.IsKnown():
			fmt.Fprintf(out, "%s%s %s = {%s\n", pad, signOf(was, is), name, replaced)
			printAttributes(out, indent+4, a.NestedType.Attributes, was, is, c)
			fmt.Fprintf(out, "%s  }\n", pad)
		default:
			fmt.Fprintf(out, "%s%s %s = %s%s\n", pad, signOf(was, is), name, difference(was, is, indent+2), replaced)
		}
	}
	if unchanged > 0 && c != nil {
		fmt.Fprintf(out, "%s  # (%d unchanged attributes hidden)\n", strings.Repeat(" ", indent), unchanged)
	}
}

func signOf(was, is cty.Value) string {
	switch {
	case was.IsNull():
		return "+"
	case is.IsKnown() && is.IsNull():
		return "-"
	}
	return "~"
}

// difference prints how a value changes.
func difference(was, is cty.Value, indent int) string {
	switch {
	case was.IsNull():
		return text(is, indent)
	case !is.IsKnown() || is.IsNull():
		return text(was, indent) + " -> " + text(is, indent)
	}
	before, after := parts(was), parts(is)
	if before == nil && after == nil {
		return text(was, indent) + " -> " + text(is, indent)
	}
	pad := strings.Repeat(" ", indent)
	var out strings.Builder
	out.WriteString("{\n")
	names := maps.Clone(before)
	if names == nil {
		names = map[string]cty.Value{}
	}
	maps.Copy(names, after)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		old, had := before[name]
		now, has := after[name]
		switch {
		case had && has && old.RawEquals(now):
		case had && has:
			fmt.Fprintf(&out, "%s  ~ %s = %s\n", pad, name, difference(old, now, indent+4))
		case had:
			fmt.Fprintf(&out, "%s  - %s = %s\n", pad, name, text(old, indent+4))
		default:
			fmt.Fprintf(&out, "%s  + %s = %s\n", pad, name, text(now, indent+4))
		}
	}
	return out.String() + pad + "}"
}

// parts returns the elements of a collection or object by their names; nil for other values.
func parts(value cty.Value) map[string]cty.Value {
	of := value.Type()
	if !core.IsThere(value) || !of.IsCollectionType() && !of.IsObjectType() && !of.IsTupleType() {
		return nil
	}
	all := map[string]cty.Value{}
	for it := value.ElementIterator(); it.Next(); {
		key, element := it.Element()
		name := ""
		switch {
		case of.IsSetType():
			name = text(element, 0)
		case key.Type() == cty.String:
			name = key.AsString()
			if !of.IsObjectType() {
				name = fmt.Sprintf("%q", name)
			}
		default:
			name = "[" + text(key, 0) + "]"
		}
		all[name] = element
	}
	return all
}

// text prints a value as HCL.
func text(value cty.Value, indent int) string {
	value, _ = value.UnmarkDeep()
	pad := strings.Repeat(" ", indent)
	of := value.Type()
	switch {
	case !value.IsKnown():
		return "(known after apply)"
	case value.IsNull():
		return "null"
	case of == cty.String:
		return fmt.Sprintf("%q", value.AsString())
	case of == cty.Bool:
		return fmt.Sprint(value.True())
	case of == cty.Number:
		return value.AsBigFloat().Text('f', -1)
	case of.IsListType(), of.IsSetType(), of.IsTupleType():
		var out strings.Builder
		for it := value.ElementIterator(); it.Next(); {
			_, element := it.Element()
			fmt.Fprintf(&out, "%s    %s,\n", pad, text(element, indent+4))
		}
		return "[\n" + out.String() + pad + "]"
	}
	var out strings.Builder
	all := parts(value)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if of.IsObjectType() && core.IsThere(all[name]) || !of.IsObjectType() || !all[name].IsKnown() {
			fmt.Fprintf(&out, "%s    %s = %s\n", pad, name, text(all[name], indent+4))
		}
	}
	return "{\n" + out.String() + pad + "}"
}
