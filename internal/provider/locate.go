package provider

import (
	"fmt"
	"strings"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// located returns an answer whose errors name nested attributes.
func located[Resp any](resp Resp, err error) (Resp, error) {
	locate(diagnosticsOf(resp))
	return resp, err
}

// locate adds the name of a nested attribute to the error about its value, because Terraform shows only the line of the resource
// or of the outermost attribute.
func locate(diagnostics []*tfprotov6.Diagnostic) {
	for _, d := range diagnostics {
		name := attributeName(d.Attribute)
		if d.Attribute == nil || len(d.Attribute.Steps()) < 2 || strings.Contains(d.Detail, name) {
			continue
		}
		d.Detail = name + ": " + d.Detail
	}
}

// attributeName returns a path in HCL syntax, such as config_drive.hostname or ports["52:54:00:aa:bb:01"]. An element of a set has
// no name.
func attributeName(at *tftypes.AttributePath) string {
	var name strings.Builder
	for i, step := range at.Steps() {
		switch step := step.(type) {
		case tftypes.AttributeName:
			if i > 0 {
				name.WriteString(".")
			}
			name.WriteString(string(step))
		case tftypes.ElementKeyString:
			fmt.Fprintf(&name, "[%q]", string(step))
		case tftypes.ElementKeyInt:
			fmt.Fprintf(&name, "[%d]", int64(step))
		}
	}
	return name.String()
}
