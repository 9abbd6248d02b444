package datasources

import (
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/hashicorp/terraform-plugin-framework-validators/setvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/failure"
)

// part is something about a host that costs a request of its own.
type part struct {
	attribute string // that shows it, and its name in include
	since     api.Microversion
	schema    func() schema.Attribute
	read      func(context.Context, *reader) (attr.Value, error)
}

// parts are what include can name.
var parts = []part{
	{"inventory", api.VersionInventory, inventorySchema, readInventory},
	{"neighbors", api.VersionInventory, neighboursSchema, readNeighbours},
	{"bios_settings", api.VersionBIOS, biosSchema, readBIOS},
	{"firmware", api.VersionFirmware, firmwareSchema, readFirmware},
	{"validation", 0, validationSchema, readValidation},
	{"console", 0, consoleSchema, readConsole},
	{"cleaning_history", api.VersionHistory, cleaningsSchema, readCleanings},
}

func partNames() (names []string) {
	for _, p := range parts {
		names = append(names, p.attribute)
	}
	return names
}

func includeSchema() schema.Attribute {
	return schema.SetAttribute{
		Optional: true, ElementType: types.StringType,
		Validators: []validator.Set{setvalidator.ValueStringsAre(stringvalidator.OneOf(partNames()...))},
		MarkdownDescription: "Attributes that cost one more request each: `" + strings.Join(partNames(), "`, `") + "`. " +
			"An attribute that it does not name is null. Default: `inventory`. `inventory` and `neighbors` share a request.",
	}
}

type reader struct {
	client    *ironic.Client
	node      *ironic.Node
	inventory func() (*ironic.Inventory, error) // asks once
}

// readParts returns the values of the attributes of all parts: null for those that are not included, and for those that the user may not
// read, with a warning. It reports a part that the configuration names and the API does not have.
func (h *host) readParts(ctx context.Context, node *ironic.Node, include attr.Value, diags *diag.Diagnostics) map[string]attr.Value {
	r := &reader{h.Site.Ironic, node, sync.OnceValues(func() (*ironic.Inventory, error) {
		return h.Site.Ironic.Inventory(ctx, node.UUID)
	})}
	named, given := includes(include)
	values := map[string]attr.Value{"last_erasure": erasureValue(node, nil)}
	for _, p := range parts {
		values[p.attribute] = nullOf(ctx, p.schema().GetType())
		if !slices.Contains(named, p.attribute) {
			continue
		}
		if given && !supports(ctx, r.client, p, diags) {
			continue
		}
		value, err := p.read(ctx, r)
		switch {
		case err == nil:
			values[p.attribute] = value
			if p.attribute == "inventory" {
				inventory, _ := r.inventory()
				values["last_erasure"] = erasureValue(node, inventory)
			}
		case api.IsForbidden(err):
			_, detail := failure.Explain("", err)
			diags.AddAttributeWarning(path.Root(p.attribute), "Part of the host is not visible",
				"The attribute "+p.attribute+" of host "+ironic.NodeLabel(node)+" is null, because the user may not read it. "+detail)
		default:
			report(diags, "read "+p.attribute+" of host "+ironic.NodeLabel(node), err)
		}
	}
	return values
}

func includes(include attr.Value) (named []string, given bool) {
	set, _ := include.(types.Set)
	if set.IsNull() {
		return []string{"inventory"}, false
	}
	for _, element := range set.Elements() {
		if name, ok := element.(types.String); ok {
			named = append(named, name.ValueString())
		}
	}
	return named, true
}

// supports reports whether the API has a part, and adds an error about include if it does not.
func supports(ctx context.Context, client *ironic.Client, p part, diags *diag.Diagnostics) bool {
	err := client.Requires(ctx, p.since, `include = ["`+p.attribute+`"]`)
	if err != nil {
		summary, detail := failure.Explain(`include "`+p.attribute+`"`, err)
		diags.AddAttributeError(path.Root("include"), summary, detail)
	}
	return err == nil
}

func nullOf(ctx context.Context, kind attr.Type) attr.Value {
	null, err := kind.ValueFromTerraform(ctx, tftypes.NewValue(kind.TerraformType(ctx), nil))
	if err != nil {
		panic(err) // cannot happen: every type has a null
	}
	return null
}

func readInventory(_ context.Context, r *reader) (attr.Value, error) {
	inventory, err := r.inventory()
	return inventoryValue(inventory), err
}
