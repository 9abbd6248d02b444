package host

import (
	"context"
	"fmt"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/decide"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/framework"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/disks"
)

var hintType = types.MapType{ElemType: types.StringType}

// skipBlockDevicesAttribute makes skip_block_devices, which is one setting: Ironic replaces the list as a whole.
func skipBlockDevicesAttribute() attribute {
	at := "/properties/" + disks.KeySkip
	a := row[types.Set]{
		name: disks.KeySkip, with: at, gone: types.SetNull(hintType),
		schema: schema.SetAttribute{
			ElementType: hintType, Optional: true, Computed: true, Validators: []validator.Set{hintsValidator{}},
			MarkdownDescription: "Disks that Ironic's agent neither erases nor deploys on: hints as in `root_device`, or the " +
				"`volume_name` of a software RAID volume. Name disks by `wwn`: **by other hints, cleanings erase the file systems in " +
				"their partitions.** **The next cleaning wipes the disks of an entry that you remove.** RAID steps heed only " +
				"`volume_name`, `burnin_disk` and those of a BMC nothing. See [Erase disks](../guides/erasure.md#keep-some-disks).",
		},
		of: func(m *model) *types.Set { return &m.SkipBlockDevices },
	}.attribute()
	a.omit = func(m *model, before managed) {
		if !before.has(at) {
			m.SkipBlockDevices = types.SetNull(hintType)
		}
	}
	a.encode = func(ctx context.Context, config *model, s ironic.Settings) {
		if !framework.IsSet(config.SkipBlockDevices) {
			return
		}
		list := []any{}
		for _, hint := range hintsOf(ctx, config.SkipBlockDevices).V {
			list = append(list, map[string]string(hint))
		}
		s.SetKey("properties", disks.KeySkip, list)
	}
	a.read = func(_ context.Context, m *model, node *ironic.Node, _ bool) {
		elements := []attr.Value{}
		for _, hint := range disks.HintsOf(node.Properties) {
			elements = append(elements, framework.MapValue(hint))
		}
		if empty := framework.IsSet(m.SkipBlockDevices) && len(m.SkipBlockDevices.Elements()) == 0; len(elements) > 0 || empty {
			m.SkipBlockDevices = types.SetValueMust(hintType, elements)
		} else {
			m.SkipBlockDevices = types.SetNull(hintType)
		}
	}
	return a
}

func hintsOf(ctx context.Context, set types.Set) (hints decide.Value[[]disks.Hint]) {
	if set.IsNull() {
		return hints
	}
	hints.Unknown, hints.Set = !framework.FullyKnown(ctx, set), framework.IsSet(set)
	for _, element := range set.Elements() {
		if values, is := element.(types.Map); is && framework.FullyKnown(ctx, values) {
			hints.V = append(hints.V, framework.StringMap(values))
		}
	}
	hints.Set = hints.Set && !hints.Unknown
	return hints
}

func (m *model) keepsMore(ctx context.Context, state *model) bool {
	now := hintsOf(ctx, m.SkipBlockDevices)
	return now.Unknown || len(disks.Lacking(now.V, hintsOf(ctx, state.SkipBlockDevices).V)) > 0
}

type hintsValidator struct{}

// Description says what it accepts.
func (hintsValidator) Description(context.Context) string {
	return "must have hints with the keys " + strings.Join(disks.HintKeys, ", ")
}

func (v hintsValidator) MarkdownDescription(ctx context.Context) string { return v.Description(ctx) }

// ValidateSet refuses others.
func (v hintsValidator) ValidateSet(ctx context.Context, req validator.SetRequest, resp *validator.SetResponse) {
	for _, hint := range hintsOf(ctx, req.ConfigValue).V {
		why := hint.Fault()
		if why == "" && hint[disks.KeyVolume] != "" && len(hint) > 1 {
			why = "with volume_name, the agent ignores all other hints of the entry"
		}
		if why != "" {
			resp.Diagnostics.AddAttributeError(req.Path, "Hint that keeps no disk", fmt.Sprintf("In skip_block_devices, %s. Use %s.", why,
				strings.Join(disks.HintKeys, ", ")))
		}
	}
}
