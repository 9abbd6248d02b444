package terraformtest

import (
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/gohcl"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
)

func (c *config) addVariable(d *diagnostics, block *hcl.Block) error {
	attributes, problems := block.Body.JustAttributes()
	if problems.HasErrors() {
		return unsupported("blocks in a variable")
	}
	v := &variable{kind: cty.DynamicPseudoType}
	for name, attribute := range attributes {
		switch name {
		case "default":
			v.fallback = attribute.Expr
		case "sensitive":
			d.addHCL("", gohcl.DecodeExpression(attribute.Expr, nil, &v.sensitive))
		case "ephemeral":
			d.addHCL("", gohcl.DecodeExpression(attribute.Expr, nil, &v.ephemeral))
		case "type":
			kinds := map[string]cty.Type{"string": cty.String, "number": cty.Number, "bool": cty.Bool, "any": cty.DynamicPseudoType}
			of, known := kinds[hcl.ExprAsKeyword(attribute.Expr)]
			if v.kind = of; !known {
				return unsupported("this type of a variable")
			}
		case "description":
		default:
			return unsupported("%s of a variable", name)
		}
	}
	c.variables[block.Labels[0]] = v
	return nil
}

// setVariables returns the values of all variables: given ones and defaults.
func (c *config) setVariables(d *diagnostics, given, environment map[string]string) map[string]cty.Value {
	values := map[string]cty.Value{}
	for name := range given {
		if c.variables[name] == nil {
			d.fail("Value for undeclared variable", "A variable named %q was assigned on the command line, but the root module does not declare a variable of that name.", name)
		}
	}
	for name, v := range c.variables {
		value := cty.NilVal
		if text, is := environment[name]; is {
			value = cty.StringVal(text)
		}
		if text, is := given[name]; is {
			value = cty.StringVal(text)
		}
		if value == cty.NilVal && v.fallback != nil {
			var problems hcl.Diagnostics
			value, problems = v.fallback.Value(nil)
			d.addHCL("", problems)
		}
		if value == cty.NilVal {
			d.fail("No value for required variable", "The root module input variable %q is not set, and has no default value.", name)
			continue
		}
		made, err := convert.Convert(value, v.kind)
		if err != nil {
			d.fail("Invalid value for input variable", "%s: %v", name, err)
			continue
		}
		if v.sensitive {
			made = made.Mark(sensitive)
		}
		if v.ephemeral {
			made = made.Mark(ephemeral)
		}
		values[name] = made
	}
	return values
}

// anyVariables returns unknown values of all variables.
func (c *config) anyVariables() map[string]cty.Value {
	values := map[string]cty.Value{}
	for name, v := range c.variables {
		values[name] = cty.UnknownVal(v.kind)
	}
	return values
}
