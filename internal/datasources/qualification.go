package datasources

import (
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/notes"
)

func qualificationAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"passed_at":     text("When the machine passed, in RFC 3339; null if it did not."),
		"failed_at":     text("When it failed. While the steps run, `passed_at` and `failed_at` are null."),
		"words":         text("Ironic's words, if it failed."),
		"serial_number": text("Serial number of the machine that passed; null if it is not known, as below API 1.81."),
		"runbook":       text("Runbook of Ironic; null for `steps`."), "steps": list("Names of the steps; null for a runbook."),
	}
}

func qualificationSchema() schema.Attribute {
	return schema.SingleNestedAttribute{
		Computed: true, Attributes: qualificationAttributes(),
		MarkdownDescription: "The last qualification of the machine, by a `metal_host` or `metal qualify`; null if there was none. It is " +
			"a note in `extra` of the node, which members of its owner and of its lessee may edit.",
	}
}

// qualificationValue returns what is noted of the qualification of a node.
func qualificationValue(node *ironic.Node) types.Object {
	kinds := typesOf(qualificationAttributes())
	q := notes.QualificationOf(node)
	if q == nil {
		return types.ObjectNull(kinds)
	}
	steps := types.ListNull(types.StringType)
	if q.Runbook == "" {
		var names []string
		for _, step := range q.Steps {
			names = append(names, step.String())
		}
		steps = stringsValue(names)
	}
	return types.ObjectValueMust(kinds, map[string]attr.Value{
		"passed_at": moment(q.Passed), "failed_at": moment(q.Failed), "words": orNull(q.Words), "serial_number": orNull(q.Serial),
		"runbook": orNull(q.Runbook), "steps": steps,
	})
}
