package datasources

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/oneview"
)

var (
	_ datasource.DataSourceWithConfigure = (*serverHardware)(nil)
	_ datasource.DataSourceWithConfigure = (*profileTemplate)(nil)
)

// appliance returns the client of OneView. If none is configured, it adds an error and returns nil.
func (d *source) appliance(diags *diag.Diagnostics) *oneview.Client {
	if d.Pool == nil {
		diags.AddError("OneView is not configured", "Set oneview in the provider block, or ONEVIEW_ENDPOINT, ONEVIEW_USERNAME and "+
			"ONEVIEW_PASSWORD in the environment.")
		return nil
	}
	return d.Pool.OneView
}

// criterion returns an optional attribute that selects resources.
func criterion(description string) schema.StringAttribute {
	return schema.StringAttribute{Optional: true, MarkdownDescription: description, Validators: []validator.String{
		stringvalidator.LengthAtLeast(1), stringvalidator.RegexMatches(regexp.MustCompile(`^[^'"]*$`), "must have no quotes"),
	}}
}

// NewOneViewServerHardware returns the data source metal_oneview_server_hardware.
func NewOneViewServerHardware() datasource.DataSource {
	return &serverHardware{source{name: "metal_oneview_server_hardware"}}
}

type serverHardware struct{ source }

type serverHardwareModel struct {
	Name            types.String `tfsdk:"name"`
	SerialNumber    types.String `tfsdk:"serial_number"`
	MAC             types.String `tfsdk:"mac"`
	HardwareTypeURI types.String `tfsdk:"server_hardware_type_uri"`
	GroupURI        types.String `tfsdk:"enclosure_group_uri"`
	Free            types.Bool   `tfsdk:"free"`
	URI             types.String `tfsdk:"uri"`
	URIs            types.List   `tfsdk:"uris"`
	Servers         types.Map    `tfsdk:"servers"`
}

func serverAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"name": text("Name in OneView."), "serial_number": text("Serial number."),
		"model":                    text("Model, such as `ProLiant BL460c Gen10`."),
		"state":                    text("State in OneView, such as `NoProfileApplied`."),
		"status":                   text("Health: `OK`, `Warning`, `Critical`, `Disabled` or `Unknown`."),
		"power_state":              text("`On`, `Off`, `PoweringOn`, `PoweringOff`, `Resetting` or `Unknown`."),
		"server_profile_uri":       text("URI of its server profile; null if it has none."),
		"server_hardware_type_uri": text("URI of its server hardware type."),
		"enclosure_group_uri":      text("URI of its enclosure group; null for rack servers."),
		"macs":                     list("MAC addresses of its Ethernet ports that OneView knows."),
		"management_addresses":     list("IP addresses of its iLO."),
	}
}

func (s *serverHardware) Schema(_ context.Context, _ datasource.SchemaRequest, resp *datasource.SchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "Server hardware of the HPE OneView appliance: all of it, or the hardware that matches all configured " +
			"arguments. See the guide [OneView](../guides/oneview.md).",
		Attributes: map[string]schema.Attribute{
			"name":          criterion("Name of the server hardware, such as `Encl1, bay 3`. Fails if none matches."),
			"serial_number": criterion("Serial number. Fails if none matches."),
			"mac": criterion("MAC address of an Ethernet port. OneView knows those of blades, but not those of rack " +
				"servers. Fails if none matches."),
			"server_hardware_type_uri": criterion("URI of the server hardware type. An empty result is allowed."),
			"enclosure_group_uri":      criterion("URI of the enclosure group. An empty result is allowed."),
			"free": schema.BoolAttribute{Optional: true, MarkdownDescription: "`true`: hardware without a server " +
				"profile. `false`: hardware with one, of Ironic or of another user. An empty result is allowed. Default: both."},
			"uri":     text("URI of the hardware if exactly one matches, otherwise null."),
			"uris":    list("URIs of the matching hardware, sorted by name."),
			"servers": byName("Matching hardware, by URI.", serverAttributes()),
		},
	}
}

func (s *serverHardware) Read(ctx context.Context, req datasource.ReadRequest, resp *datasource.ReadResponse) {
	var m serverHardwareModel
	resp.Diagnostics.Append(req.Config.Get(ctx, &m)...)
	client := s.appliance(&resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	found, err := client.ListHardware(ctx, oneview.HardwareFilter{
		Name: m.Name.ValueString(), SerialNumber: m.SerialNumber.ValueString(), MAC: m.MAC.ValueString(),
		HardwareTypeURI: m.HardwareTypeURI.ValueString(), GroupURI: m.GroupURI.ValueString(),
	})
	if err != nil {
		report(&resp.Diagnostics, "list server hardware", err)
		return
	}
	found = slices.DeleteFunc(found, func(h oneview.Hardware) bool {
		return !m.Free.IsNull() && (h.ProfileURI == "") != m.Free.ValueBool()
	})
	if named := !m.Name.IsNull() || !m.SerialNumber.IsNull() || !m.MAC.IsNull(); named && len(found) == 0 {
		all, _ := client.ListHardware(ctx, oneview.HardwareFilter{}) // without them, the error says less
		resp.Diagnostics.AddError("No such server hardware", fmt.Sprintf("OneView has no server hardware with %s.%s", m.criteria(),
			existing(all, func(h *oneview.Hardware) string { return h.Name })))
		return
	}
	slices.SortFunc(found, func(a, b oneview.Hardware) int { return strings.Compare(a.Name+a.URI, b.Name+b.URI) })
	servers, uris := map[string]map[string]attr.Value{}, []string{}
	for _, h := range found {
		uris = append(uris, h.URI)
		servers[h.URI] = map[string]attr.Value{
			"name": orNull(h.Name), "serial_number": orNull(h.SerialNumber), "model": orNull(h.Model), "state": orNull(string(h.State)),
			"status": orNull(h.Status), "power_state": orNull(string(h.PowerState)), "server_profile_uri": orNull(h.ProfileURI),
			"server_hardware_type_uri": orNull(h.HardwareTypeURI), "enclosure_group_uri": orNull(h.GroupURI), "macs": stringsValue(h.MACs),
			"management_addresses": stringsValue(h.ManagementAddresses),
		}
	}
	m.URI, m.URIs, m.Servers = types.StringNull(), stringsValue(uris), objects(serverAttributes(), servers)
	if len(uris) == 1 {
		m.URI = types.StringValue(uris[0])
	}
	resp.Diagnostics.Append(resp.State.Set(ctx, &m)...)
}

func (m serverHardwareModel) criteria() string {
	text := criteria([]named{
		{"name", m.Name},
		{"serial_number", m.SerialNumber},
		{"mac", m.MAC},
		{"server_hardware_type_uri", m.HardwareTypeURI},
		{"enclosure_group_uri", m.GroupURI},
	})
	if !m.Free.IsNull() {
		// an empty result is an error only with a name, so this is never the first
		text += fmt.Sprintf(" and free = %v", m.Free.ValueBool())
	}
	return text
}

type named struct {
	name  string
	value types.String
}

func criteria(all []named) string {
	var parts []string
	for _, c := range all {
		if !c.value.IsNull() {
			parts = append(parts, fmt.Sprintf("%s %q", c.name, c.value.ValueString()))
		}
	}
	return strings.Join(parts, " and ")
}

// NewOneViewServerProfileTemplate returns the data source metal_oneview_server_profile_template.
func NewOneViewServerProfileTemplate() datasource.DataSource {
	return &profileTemplate{source{name: "metal_oneview_server_profile_template"}}
}

type profileTemplate struct{ source }

type profileTemplateModel struct {
	Name            types.String `tfsdk:"name"`
	HardwareTypeURI types.String `tfsdk:"server_hardware_type_uri"`
	GroupURI        types.String `tfsdk:"enclosure_group_uri"`
	URI             types.String `tfsdk:"uri"`
	Description     types.String `tfsdk:"description"`
	MACType         types.String `tfsdk:"mac_type"`
	ManagesBoot     types.Bool   `tfsdk:"manages_boot"`
	Status          types.String `tfsdk:"status"`
}

func (p *profileTemplate) Schema(_ context.Context, _ datasource.SchemaRequest, resp *datasource.SchemaResponse) {
	both := func(description string) schema.StringAttribute {
		a := criterion(description)
		a.Computed = true
		return a
	}
	resp.Schema = schema.Schema{
		MarkdownDescription: "Server profile template of the HPE OneView appliance. Fails unless exactly one matches. The guide " +
			"[OneView](../guides/oneview.md) lists the settings that Ironic needs.",
		Attributes: map[string]schema.Attribute{
			"name":                     both("Name of the template."),
			"server_hardware_type_uri": both("URI of the server hardware type that the template is for."),
			"enclosure_group_uri":      both("URI of the enclosure group that the template is for; null for rack servers."),
			"uri":                      text("URI of the template."),
			"description":              text("Description in OneView."),
			"mac_type":                 text("`Physical`, `Virtual` or `UserDefined`. Ironic needs `Physical`."),
			"manages_boot":             flag("Whether its profiles manage the boot order (`boot.manageBoot`). Ironic needs `true`."),
			"status":                   text("Health: `OK`, `Warning`, `Critical`, `Disabled` or `Unknown`."),
		},
	}
}

func (p *profileTemplate) Read(ctx context.Context, req datasource.ReadRequest, resp *datasource.ReadResponse) {
	var m profileTemplateModel
	resp.Diagnostics.Append(req.Config.Get(ctx, &m)...)
	client := p.appliance(&resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	filter := oneview.TemplateFilter{
		Name: m.Name.ValueString(), HardwareTypeURI: m.HardwareTypeURI.ValueString(),
		GroupURI: m.GroupURI.ValueString(),
	}
	found, err := client.ListTemplates(ctx, filter)
	if err != nil {
		report(&resp.Diagnostics, "list server profile templates", err)
		return
	}
	if len(found) != 1 {
		detail := "OneView has no server profile template."
		if wanted := criteria([]named{
			{"name", m.Name},
			{"server_hardware_type_uri", m.HardwareTypeURI},
			{"enclosure_group_uri", m.GroupURI},
		}); wanted != "" {
			all, _ := client.ListTemplates(ctx, oneview.TemplateFilter{}) // without them, the error says less
			detail = fmt.Sprintf("OneView has no server profile template with %s.%s", wanted,
				existing(all, func(t *oneview.Template) string { return t.Name }))
		}
		if len(found) > 1 {
			var labels []string
			for i := range found {
				labels = append(labels, oneview.TemplateLabel(&found[i]))
			}
			detail = fmt.Sprintf("OneView has %d: %s. Give the name.", len(found), strings.Join(labels, ", "))
		}
		resp.Diagnostics.AddError("Not exactly one server profile template", detail)
		return
	}
	t := found[0]
	resp.Diagnostics.Append(resp.State.Set(ctx, &profileTemplateModel{
		Name: types.StringValue(t.Name), HardwareTypeURI: orNull(t.HardwareTypeURI), GroupURI: orNull(t.GroupURI),
		URI: types.StringValue(t.URI), Description: orNull(t.Description), MACType: orNull(t.MACType),
		ManagesBoot: types.BoolValue(t.ManageBoot), Status: orNull(t.Status),
	})...)
}

// existing returns a sentence with the names of the first of all objects; "" if there are none.
func existing[T any](all []T, name func(*T) string) string {
	const most = 20
	if len(all) == 0 {
		return ""
	}
	var names []string
	for i := range all {
		names = append(names, name(&all[i]))
	}
	slices.Sort(names)
	var parts []string
	for _, name := range names[:min(most, len(names))] {
		parts = append(parts, strconv.Quote(name))
	}
	if more := len(names) - most; more > 0 {
		parts = append(parts, fmt.Sprintf("and %d more", more))
	}
	return fmt.Sprintf(" It has %s.", strings.Join(parts, ", "))
}
