package provider

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// warnEmpty adds a warning for each object of a configuration that is written and has no value: Terraform has dropped its keys if they are
// misspelt. Elements of maps may be empty, and oneview takes what it lacks from the environment.
func warnEmpty(diagnostics *[]*tfprotov6.Diagnostic, schema *tfprotov6.Schema, config *tfprotov6.DynamicValue) {
	if schema == nil || config == nil {
		return // which the framework reports
	}
	if value, err := config.Unmarshal(schema.ValueType()); err == nil {
		warnEmptyIn(diagnostics, schema.Block.Attributes, value, tftypes.NewAttributePath())
	}
}

// warnEmptyIn is warnEmpty for an object at a path, and the objects in it.
func warnEmptyIn(diagnostics *[]*tfprotov6.Diagnostic, of []*tfprotov6.SchemaAttribute, object tftypes.Value, at *tftypes.AttributePath) {
	var values map[string]tftypes.Value
	if !object.IsKnown() || object.IsNull() || object.As(&values) != nil {
		return
	}
	var keys []string
	empty := len(at.Steps()) > 0
	for _, a := range of {
		empty = empty && values[a.Name].IsNull()
		if a.Required || a.Optional {
			keys = append(keys, a.Name)
		}
		if a.NestedType != nil && a.NestedType.Nesting == tfprotov6.SchemaObjectNestingModeSingle && a.Name != "oneview" {
			warnEmptyIn(diagnostics, a.NestedType.Attributes, values[a.Name], at.WithAttributeName(a.Name))
		}
	}
	if slices.Sort(keys); empty {
		*diagnostics = append(*diagnostics, &tfprotov6.Diagnostic{
			Severity: tfprotov6.DiagnosticSeverityWarning, Summary: "Object without a value", Attribute: at,
			Detail: fmt.Sprintf("%s has no value. Terraform drops keys that do not exist; the keys are %s. The command metal lint finds "+
				"the wrong ones.", attributeName(at), strings.Join(keys, ", ")),
		})
	}
}
