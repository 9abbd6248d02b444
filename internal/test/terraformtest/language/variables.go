package language

import (
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

func (c *Config) addVariable(d *Diagnostics, block *hcl.Block) error {
	attributes, problems := block.Body.JustAttributes()
	if problems.HasErrors() {
		return core.Unsupported("blocks in a variable")
	}
	v := &variable{kind: cty.DynamicPseudoType}
	for name, attribute := range attributes {
		switch name {
		case "default":
			v.fallback = attribute.Expr
		case "sensitive":
			d.AddHCL("", gohcl.DecodeExpression(attribute.Expr, nil, &v.sensitive))
		case "ephemeral":
			d.AddHCL("", gohcl.DecodeExpression(attribute.Expr, nil, &v.ephemeral))
		case "type":
			var problems hcl.Diagnostics
			if v.kind, v.defaults, problems = typeexpr.TypeConstraintWithDefaults(attribute.Expr); problems.HasErrors() {
				return core.Unsupported("this type of a variable: %v", problems)
			}
			v.isExpression = !v.kind.IsPrimitiveType()
		case "description":
		default:
			return core.Unsupported("%s of a variable", name)
		}
	}
	c.variables[block.Labels[0]] = v
	return nil
}

// SetVariables returns the values of all variables: given ones and defaults.
func (c *Config) SetVariables(d *Diagnostics, given, environment map[string]string) map[string]cty.Value {
	values := map[string]cty.Value{}
	for name := range given {
		if c.variables[name] == nil {
			d.Fail("Value for undeclared variable", "A variable named %q was assigned on the command line, but the root module does not declare a variable of that name.", name)
		}
	}
	for name, v := range c.variables {
		value := cty.NilVal
		for _, texts := range []map[string]string{environment, given} { // the last one counts
			if text, is := texts[name]; is {
				value = v.parse(d, text)
			}
		}
		if value == cty.NilVal && v.fallback != nil {
			var problems hcl.Diagnostics
			value, problems = v.fallback.Value(nil)
			d.AddHCL("", problems)
		}
		if value == cty.NilVal {
			d.Fail("No value for required variable", "The root module input variable %q is not set, and has no default value.", name)
			continue
		}
		if v.defaults != nil && !value.IsNull() {
			value = v.defaults.Apply(value)
		}
		made, err := convert.Convert(value, v.kind)
		if err != nil {
			d.Fail("Invalid value for input variable", "%s: %v", name, err)
			continue
		}
		if v.sensitive {
			made = made.Mark(schema.Sensitive)
		}
		if v.ephemeral {
			made = made.Mark(schema.Ephemeral)
		}
		values[name] = made
	}
	return values
}

// parse returns the value that a text of a command or the environment stands for.
func (v *variable) parse(d *Diagnostics, text string) cty.Value {
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
	for name, v := range c.variables {
		values[name] = cty.UnknownVal(v.kind)
	}
	return values
}

// WithoutEphemeral returns the variables that a saved plan has.
func (c *Config) WithoutEphemeral(variables map[string]cty.Value) map[string]cty.Value {
	kept := maps.Clone(variables)
	for name, v := range c.variables {
		if v.ephemeral {
			delete(kept, name)
		}
	}
	return kept
}

// EphemeralOf returns the names of the ephemeral variables.
func (c *Config) EphemeralOf() (names []string) {
	for name, v := range c.variables {
		if v.ephemeral {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
