package language

import (
	"errors"
	"maps"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/ext/typeexpr"
	"github.com/hashicorp/hcl/v2/gohcl"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/terraformtest/core"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/terraformtest/schema"
)

func (m *Module) addVariable(d *Diagnostics, block *hcl.Block) error {
	content, problems := block.Body.Content(&hcl.BodySchema{
		Attributes: []hcl.AttributeSchema{
			{Name: "default"}, {Name: "description"}, {Name: "ephemeral"}, {Name: "nullable"}, {Name: "sensitive"}, {Name: "type"},
		},
		Blocks: []hcl.BlockHeaderSchema{{Type: "validation"}},
	})
	if problems.HasErrors() {
		return core.Unsupported("this variable: %v", problems)
	}
	v := &Variable{kind: cty.DynamicPseudoType}
	for _, inner := range content.Blocks {
		if err := addRule(&v.Rules, inner); err != nil {
			return err
		}
	}
	for name, attribute := range content.Attributes {
		switch name {
		case "default":
			v.fallback = attribute.Expr
		case "sensitive":
			d.AddHCL("", gohcl.DecodeExpression(attribute.Expr, nil, &v.sensitive))
		case "ephemeral":
			d.AddHCL("", gohcl.DecodeExpression(attribute.Expr, nil, &v.ephemeral))
		case "nullable":
			isNullable := true
			d.AddHCL("", gohcl.DecodeExpression(attribute.Expr, nil, &isNullable))
			v.isRequired = !isNullable
		case "type":
			var problems hcl.Diagnostics
			if v.kind, v.defaults, problems = typeexpr.TypeConstraintWithDefaults(attribute.Expr); problems.HasErrors() {
				return core.Unsupported("this type of a variable: %v", problems)
			}
			v.isExpression = !v.kind.IsPrimitiveType()
		}
	}
	m.Variables[block.Labels[0]] = v
	return nil
}

// SetVariables returns the values of all variables: given ones and defaults.
func (c *Config) SetVariables(d *Diagnostics, given, environment map[string]string) map[string]cty.Value {
	values := map[string]cty.Value{}
	for name := range given {
		if c.Variables[name] == nil {
			d.Fail("Value for undeclared variable", "A variable named %q was assigned on the command line, but the root module does not "+
				"declare a variable of that name.", name)
		}
	}
	for name, v := range c.Variables {
		value := cty.NilVal
		for _, texts := range []map[string]string{environment, given} { // the last one counts
			if text, is := texts[name]; is {
				value = v.parse(d, text)
			}
		}
		if value == cty.NilVal && v.fallback == nil {
			d.Fail("No value for required variable", "The root module input variable %q is not set, and has no default value.", name)
			continue
		}
		made, err := v.Of(value)
		if err != nil {
			d.Fail("Invalid value for input variable", "%s: %v", name, err)
			continue
		}
		values[name] = made
	}
	return values
}

// Of returns the value of a variable that is set to a value; cty.NilVal: it is not set.
func (v *Variable) Of(value cty.Value) (cty.Value, error) {
	if value == cty.NilVal || v.isRequired && v.fallback != nil && value.IsKnown() && value.IsNull() {
		var problems hcl.Diagnostics
		if value, problems = v.fallback.Value(nil); problems.HasErrors() {
			return cty.DynamicVal, problems
		}
	}
	value, marks := value.Unmark()
	if v.defaults != nil && value.IsKnown() && !value.IsNull() {
		value = v.defaults.Apply(value)
	}
	made, err := convert.Convert(value, v.kind)
	switch {
	case err != nil:
		return cty.DynamicVal, err
	case v.isRequired && made.IsKnown() && made.IsNull():
		return cty.DynamicVal, errors.New("required variable may not be set to null")
	}
	made = made.WithMarks(marks)
	if v.sensitive {
		made = made.Mark(schema.Sensitive)
	}
	if v.ephemeral {
		made = made.Mark(schema.Ephemeral)
	}
	return made, nil
}

// parse returns the value that a text of a command or the environment stands for.
func (v *Variable) parse(d *Diagnostics, text string) cty.Value {
	if !v.isExpression {
		return cty.StringVal(text)
	}
	expression, problems := hclsyntax.ParseExpression([]byte(text), "variable", hcl.InitialPos)
	if d.AddHCL("", problems) {
		return cty.DynamicVal
	}
	value, problems := expression.Value(nil)
	d.AddHCL("", problems)
	return value
}

// AnyVariables returns unknown values of all variables.
func (c *Config) AnyVariables() map[string]cty.Value {
	values := map[string]cty.Value{}
	for name, v := range c.Variables {
		values[name] = cty.UnknownVal(v.kind)
	}
	return values
}

// WithoutEphemeral returns the variables that a saved plan has.
func (c *Config) WithoutEphemeral(variables map[string]cty.Value) map[string]cty.Value {
	kept := maps.Clone(variables)
	for name, v := range c.Variables {
		if v.ephemeral {
			delete(kept, name)
		}
	}
	return kept
}

// EphemeralOf returns the names of the ephemeral variables.
func (c *Config) EphemeralOf() (names []string) {
	for name, v := range c.Variables {
		if v.ephemeral {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
