package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/function"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/discovery"
)

var _ function.Function = (*discoveredName)(nil)

func newDiscoveredName() function.Function { return &discoveredName{} }

// discoveredName tells how a template names a machine, so that rules can be tried out and names reused.
type discoveredName struct{}

// Metadata names the function.
func (f *discoveredName) Metadata(_ context.Context, _ function.MetadataRequest, resp *function.MetadataResponse) {
	resp.Name = "discovered_name"
}

// Definition describes the function.
func (f *discoveredName) Definition(_ context.Context, _ function.DefinitionRequest, resp *function.DefinitionResponse) {
	resp.Definition = function.Definition{
		Summary: "Name of a discovered machine",
		MarkdownDescription: "The name that a `name_template` of `metal_discovery_import` gives to a machine. It asks nobody, and knows nothing of other machines: " +
			"that a name is taken does not show. A machine without a usable value is an error that says why.",
		Parameters: []function.Parameter{
			function.DynamicParameter{Name: "template", MarkdownDescription: "Object with `hardware_details`, and `prefix`, `suffix`, `style` where wanted."},
			function.DynamicParameter{Name: "host", MarkdownDescription: "Object with what is known of the machine, as in `hosts`: `id`, `hostname`, `ip`, `serial_number`, `boot_mac`."},
		},
		Return: function.StringReturn{},
	}
}

// Run makes the name.
func (f *discoveredName) Run(ctx context.Context, req function.RunRequest, resp *function.RunResponse) {
	var template, host types.Dynamic
	if resp.Error = function.ConcatFuncErrors(req.Arguments.Get(ctx, &template, &host)); resp.Error != nil {
		return
	}
	t, h := texts(template), texts(host)
	rule := discovery.Template{Prefix: t["prefix"], Suffix: t["suffix"], Detail: discovery.Detail(t["hardware_details"]), Style: discovery.StyleIronic}
	if t["style"] != "" {
		rule.Style = discovery.Style(t["style"])
	}
	if err := rule.Validate(); err != nil {
		resp.Error = function.NewArgumentFuncError(0, err.Error())
		return
	}
	machine := discovery.Host{
		ID: h["id"], HasInventory: true, Hostname: h["hostname"], Serial: h["serial_number"], PXEInterface: h["boot_mac"],
		Interfaces: []discovery.Interface{{MAC: h["boot_mac"], IPv4: h["ip"], IPv6: h["ip"], HasCarrier: true}},
	}
	name, err := rule.Name(machine)
	if err != nil {
		resp.Error = function.NewArgumentFuncError(1, err.Error())
		return
	}
	resp.Error = function.ConcatFuncErrors(resp.Result.Set(ctx, name))
}

// texts are the strings of an object.
func texts(v types.Dynamic) map[string]string {
	var attributes map[string]attr.Value
	switch object := v.UnderlyingValue().(type) {
	case types.Object:
		attributes = object.Attributes()
	case types.Map:
		attributes = object.Elements()
	}
	out := map[string]string{}
	for name, value := range attributes {
		if text, ok := value.(types.String); ok {
			out[name] = text.ValueString()
		}
	}
	return out
}
