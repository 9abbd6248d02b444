package functions

import (
	"context"
	"maps"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/function"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/driverinfo"
)

// NewBMC returns bmc, which reads the address of a BMC as metal_host does.
func NewBMC() function.Function { return bmcFunction{} }

type bmcFunction struct{}

// Metadata sets the name.
func (bmcFunction) Metadata(_ context.Context, _ function.MetadataRequest, resp *function.MetadataResponse) {
	resp.Name = "bmc"
}

type bmcResult struct {
	Scheme         types.String      `tfsdk:"scheme"`
	Driver         types.String      `tfsdk:"driver"`
	Host           types.String      `tfsdk:"host"`
	Port           types.Int64       `tfsdk:"port"`
	Transport      types.String      `tfsdk:"transport"`
	System         types.String      `tfsdk:"system"`
	PrivilegeLevel types.String      `tfsdk:"privilege_level"`
	Interfaces     map[string]string `tfsdk:"hardware_interfaces"`
	DriverInfo     map[string]string `tfsdk:"driver_info"`
}

// bmcAttributes are the types of bmcResult.
var bmcAttributes = map[string]attr.Type{
	"scheme": types.StringType, "driver": types.StringType, "host": types.StringType, "port": types.Int64Type,
	"transport": types.StringType,
	"system":    types.StringType, "privilege_level": types.StringType,
	"hardware_interfaces": types.MapType{ElemType: types.StringType}, "driver_info": types.MapType{ElemType: types.StringType},
}

// Definition describes the argument and the result.
func (bmcFunction) Definition(_ context.Context, _ function.DefinitionRequest, resp *function.DefinitionResponse) {
	resp.Definition = function.Definition{
		Summary:     "The parts of a BMC's address",
		Description: "Returns the driver, host, port and system of a BMC's address, as the provider reads bmc.address of a metal_host.",
		Parameters: []function.Parameter{function.StringParameter{
			Name:        "address",
			Description: "The address of a BMC, such as redfish-virtualmedia://192.0.2.11/redfish/v1/Systems/1.",
		}},
		Return: function.ObjectReturn{AttributeTypes: bmcAttributes},
	}
}

// Run reads the address.
func (bmcFunction) Run(ctx context.Context, req function.RunRequest, resp *function.RunResponse) {
	var address string
	resp.Error = req.Arguments.Get(ctx, &address)
	if resp.Error != nil {
		return
	}
	bmc, err := driverinfo.ParseBMC(address)
	if err != nil {
		resp.Error = function.NewArgumentFuncError(0, err.Error())
		return
	}
	result := bmcResult{
		Scheme: types.StringValue(bmc.Scheme), Driver: types.StringValue(bmc.Driver), Host: types.StringValue(bmc.Host),
		Port:      types.Int64Null(),
		Transport: orNull(bmc.Transport), System: orNull(bmc.Info["redfish_system_id"]),
		PrivilegeLevel: orNull(bmc.Info["ipmi_priv_level"]),
		Interfaces:     map[string]string{}, DriverInfo: map[string]string{},
	}
	if bmc.Port != 0 {
		result.Port = types.Int64Value(int64(bmc.Port))
	}
	maps.Copy(result.Interfaces, bmc.Interfaces)
	for key, value := range bmc.Info {
		result.DriverInfo[key], _ = value.(string) // all are
	}
	resp.Error = resp.Result.Set(ctx, result)
}

// orNull returns a text; null if it is empty or missing.
func orNull(value any) types.String {
	text, _ := value.(string)
	if text == "" {
		return types.StringNull()
	}
	return types.StringValue(text)
}
