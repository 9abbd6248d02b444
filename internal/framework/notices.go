package framework

import (
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/decide"
)

// Show adds the notices of a plan to diagnostics.
func Show(diags *diag.Diagnostics, notices ...decide.Notice) {
	for _, n := range notices {
		switch at := attributePath(n.At); {
		case n.Severity == decide.Refusal && n.At == nil:
			diags.AddError(n.Summary, n.Detail)
		case n.Severity == decide.Refusal:
			diags.AddAttributeError(at, n.Summary, n.Detail)
		case n.At == nil:
			diags.AddWarning(n.Summary, n.Detail)
		default:
			diags.AddAttributeWarning(at, n.Summary, n.Detail)
		}
	}
}

// attributePath returns the framework's path of an attribute.
func attributePath(of decide.Path) path.Path {
	at := path.Empty()
	for i, part := range of {
		switch part := part.(type) {
		case string:
			if i == 0 {
				at = path.Root(part)
			} else {
				at = at.AtName(part)
			}
		case decide.Key:
			at = at.AtMapKey(string(part))
		case int:
			at = at.AtListIndex(part)
		}
	}
	return at
}
