package datasources

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/disks"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/notes"
)

// moment returns a time for state; null if it is zero.
func moment(at time.Time) types.String {
	if at.IsZero() {
		return types.StringNull()
	}
	return types.StringValue(at.UTC().Format(time.RFC3339))
}

func erasureAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"steps": list("Clean steps that were seen at work, such as `deploy.erase_devices`, in their order. A step that ends within " +
			"seconds may be missing."),
		"began_at": text("When the cleaning had begun at the latest, in RFC 3339."), "ended_at": text("When it ended, in RFC 3339."),
		"result": text("`succeeded` or `failed`."),
		"run":    text("The run of this provider that has watched it: a UUID, as messages and logs name it."),
		"disks": list("Serial numbers of the disks that Ironic's agent is told to erase: those of the last inspection, without those " +
			"of the node's `skip_block_devices`. That they were erased, only the steps say. Null if `inventory` is null, if a disk has " +
			"no serial number, or if a hint is more than a value."),
	}
}

func erasureSchema() schema.Attribute {
	return schema.SingleNestedAttribute{
		Computed: true, Attributes: erasureAttributes(),
		MarkdownDescription: "The last automated cleaning that a run of this provider has watched to its end. Ironic keeps no such " +
			"record, so a cleaning that no run watched is missing here. Null if there was none. It is a note in `extra` of the node, " +
			"which members of its owner and of its lessee may edit: no proof, and null if Ironic's times contradict it. See [Erase " +
			"disks](../guides/erasure.md#what-is-known-afterwards).",
	}
}

// erasureValue returns the record of the last cleaning of a node. inventory is nil if it is not known.
func erasureValue(node *ironic.Node, inventory *ironic.Inventory) types.Object {
	kinds := typesOf(erasureAttributes())
	e := notes.ErasureOf(node)
	if e == nil {
		return types.ObjectNull(kinds)
	}
	result := "succeeded"
	if e.Failed {
		result = "failed"
	}
	disks := types.ListNull(types.StringType)
	if serials, known := erasedDisks(node, inventory); known {
		disks = stringsValue(serials)
	}
	return types.ObjectValueMust(kinds, map[string]attr.Value{
		"steps": stringsValue(e.Steps), "began_at": moment(e.Began), "ended_at": moment(e.Ended),
		"result": types.StringValue(result), "run": orNull(e.Run), "disks": disks,
	})
}

// erasedDisks returns the serial numbers of the disks that the agent is told to erase, and whether they are known.
func erasedDisks(node *ironic.Node, inventory *ironic.Inventory) (serials []string, known bool) {
	if inventory == nil {
		return nil, false
	}
	split := disks.SplitBy(disks.HintsOf(node.Properties), inventory.Disks)
	for _, disk := range inventory.Disks {
		if disk.Serial == "" {
			return nil, false
		}
	}
	for _, disk := range split.Others {
		serials = append(serials, disk.Serial)
	}
	if split.Open {
		return nil, false
	}
	slices.Sort(serials)
	return serials, true
}

func cleaningAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"created_at": text("When the entry was made, in RFC 3339."),
		"kind":       text("`automated` or `manual`; null for a failure, which does not say it."),
		"failed":     flag("Whether the cleaning has failed."), "event": text("Ironic's words."),
	}
}

func cleaningsSchema() schema.Attribute {
	return schema.ListNestedAttribute{
		Computed: true, NestedObject: schema.NestedAttributeObject{Attributes: cleaningAttributes()},
		MarkdownDescription: "Cleanings that have ended, by Ironic's history (`include = [\"cleaning_history\"]`, API 1.78), the oldest " +
			"first. Ironic 21.4 records failures only. No entry says which steps have run.",
	}
}

// readCleanings reads the ends of cleanings from the history of a node (reference/ironic.md#history-of-cleanings).
func readCleanings(ctx context.Context, r *reader) (attr.Value, error) {
	kind := types.ObjectType{AttrTypes: typesOf(cleaningAttributes())}
	events, err := r.client.History(ctx, r.node.UUID)
	elements := []attr.Value{}
	for _, e := range events {
		flow, ended := strings.CutSuffix(e.Type, "_cleaning_end")
		if !ended && e.Type != "cleaning" {
			continue
		}
		if !ended {
			flow = ""
		}
		elements = append(elements, types.ObjectValueMust(kind.AttrTypes, map[string]attr.Value{
			"created_at": moment(e.CreatedAt), "kind": orNull(flow), "failed": types.BoolValue(e.Severity == "ERROR"),
			"event": orNull(e.Event),
		}))
	}
	return types.ListValueMust(kind, elements), err
}
