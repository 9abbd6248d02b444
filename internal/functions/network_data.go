// Package functions has the provider's functions: provider::metal::NAME(...). They are pure, and need no configuration of the provider.
package functions

import (
	"cmp"
	"context"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/function"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/networkdata"
)

// NewNetworkData returns network_data, which builds network data in OpenStack's format.
func NewNetworkData() function.Function { return networkDataFunction{} }

type networkDataFunction struct{}

// Metadata sets the name.
func (networkDataFunction) Metadata(_ context.Context, _ function.MetadataRequest, resp *function.MetadataResponse) {
	resp.Name = "network_data"
}

// Definition describes the argument. Its type is not fixed: an object type would demand all keys, and Terraform would leave out keys
// that it does not have (reference/terraform.md#arguments-of-functions).
func (networkDataFunction) Definition(_ context.Context, _ function.DefinitionRequest, resp *function.DefinitionResponse) {
	resp.Definition = function.Definition{
		Summary: "Network data of a machine, as JSON",
		Description: "Describes network cards, bonds, VLANs, addresses, routes and name servers in OpenStack's format, " +
			"for network_data of metal_host and of the config drive of metal_deployment.",
		Parameters: []function.Parameter{function.DynamicParameter{
			Name:        "network",
			Description: "An object that describes the network of the machine.",
		}},
		Return: function.StringReturn{},
	}
}

// Run builds the network data. An error says where in the argument it is: Terraform points at the beginning of the argument only.
func (networkDataFunction) Run(ctx context.Context, req function.RunRequest, resp *function.RunResponse) {
	var network types.Dynamic
	resp.Error = req.Arguments.Get(ctx, &network)
	if resp.Error != nil {
		return
	}
	document, faults := networkdata.Build(decoded(network))
	if len(faults) > 0 {
		resp.Error = function.NewArgumentFuncError(0, lines(faults))
		return
	}
	resp.Error = resp.Result.Set(ctx, string(document))
}

// lines describes faults, one a line. Terraform adds a full stop.
func lines(faults []networkdata.Fault) string {
	var lines []string
	for _, fault := range faults {
		fault.Path = cmp.Or(fault.Path, "the argument")
		lines = append(lines, fault.Path+": "+fault.Must)
	}
	return strings.Join(lines, "\n")
}

// decoded returns a value as a JSON decoder does.
func decoded(value attr.Value) any {
	switch value := value.(type) {
	case types.Dynamic:
		return decoded(value.UnderlyingValue())
	case types.String:
		if !value.IsNull() {
			return value.ValueString()
		}
	case types.Number:
		if !value.IsNull() {
			number, _ := value.ValueBigFloat().Float64()
			return number
		}
	case types.Bool:
		if !value.IsNull() {
			return value.ValueBool()
		}
	case types.Object:
		return decodedMap(value.IsNull(), value.Attributes())
	case types.Map:
		return decodedMap(value.IsNull(), value.Elements())
	case types.Tuple:
		return decodedList(value.IsNull(), value.Elements())
	case types.List:
		return decodedList(value.IsNull(), value.Elements())
	case types.Set:
		return decodedList(value.IsNull(), value.Elements())
	}
	return nil
}

func decodedMap(null bool, elements map[string]attr.Value) any {
	if null {
		return nil
	}
	all := make(map[string]any, len(elements))
	for key, element := range elements {
		all[key] = decoded(element)
	}
	return all
}

func decodedList(null bool, elements []attr.Value) any {
	if null {
		return nil
	}
	all := make([]any, len(elements))
	for i, element := range elements {
		all[i] = decoded(element)
	}
	return all
}
