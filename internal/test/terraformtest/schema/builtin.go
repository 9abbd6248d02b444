package schema

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"github.com/zclconf/go-cty/cty"
)

// Builtin is Terraform's own provider, with terraform_data.
var Builtin = &Provider{Name: "terraform", Source: "terraform.io/builtin/terraform", Start: func([]string, http.RoundTripper) Server {
	return builtin{}
}}

// builtin serves terraform_data.
type builtin struct{ tfprotov6.ProviderServer }

// Close does nothing.
func (builtin) Close(context.Context) {}

var dataSchema = &tfprotov6.Schema{Block: &tfprotov6.SchemaBlock{Attributes: []*tfprotov6.SchemaAttribute{
	{Name: "input", Type: tftypes.DynamicPseudoType, Optional: true},
	{Name: "output", Type: tftypes.DynamicPseudoType, Computed: true},
	{Name: "triggers_replace", Type: tftypes.DynamicPseudoType, Optional: true},
	{Name: "id", Type: tftypes.String, Computed: true},
}}}

var dataKind = kindOf("terraform_data", dataSchema)

// GetProviderSchema returns the schemas.
func (builtin) GetProviderSchema(context.Context, *tfprotov6.GetProviderSchemaRequest) (*tfprotov6.GetProviderSchemaResponse, error) {
	return &tfprotov6.GetProviderSchemaResponse{ResourceSchemas: map[string]*tfprotov6.Schema{"terraform_data": dataSchema}}, nil
}

// ValidateProviderConfig accepts everything.
func (builtin) ValidateProviderConfig(context.Context,
	*tfprotov6.ValidateProviderConfigRequest,
) (*tfprotov6.ValidateProviderConfigResponse, error) {
	return &tfprotov6.ValidateProviderConfigResponse{}, nil
}

// ConfigureProvider does nothing.
func (builtin) ConfigureProvider(context.Context, *tfprotov6.ConfigureProviderRequest) (*tfprotov6.ConfigureProviderResponse, error) {
	return &tfprotov6.ConfigureProviderResponse{}, nil
}

// ValidateResourceConfig accepts everything.
func (builtin) ValidateResourceConfig(context.Context,
	*tfprotov6.ValidateResourceConfigRequest,
) (*tfprotov6.ValidateResourceConfigResponse, error) {
	return &tfprotov6.ValidateResourceConfigResponse{}, nil
}

// UpgradeResourceState decodes a state.
func (builtin) UpgradeResourceState(_ context.Context,
	req *tfprotov6.UpgradeResourceStateRequest,
) (*tfprotov6.UpgradeResourceStateResponse, error) {
	value, err := dataKind.Decode(&tfprotov6.DynamicValue{JSON: req.RawState.JSON})
	if err != nil {
		return nil, err
	}
	return &tfprotov6.UpgradeResourceStateResponse{UpgradedState: dataKind.Encode(value)}, nil
}

// ReadResource returns what is in state.
func (builtin) ReadResource(_ context.Context, req *tfprotov6.ReadResourceRequest) (*tfprotov6.ReadResourceResponse, error) {
	return &tfprotov6.ReadResourceResponse{NewState: req.CurrentState, Private: req.Private}, nil
}

// PlanResourceChange plans the output of an input, and a new ID if the triggers change.
func (builtin) PlanResourceChange(_ context.Context,
	req *tfprotov6.PlanResourceChangeRequest,
) (*tfprotov6.PlanResourceChangeResponse, error) {
	resp := &tfprotov6.PlanResourceChangeResponse{PlannedState: req.ProposedNewState, PlannedPrivate: req.PriorPrivate}
	prior, err := dataKind.Decode(req.PriorState)
	if err != nil {
		return nil, err
	}
	next, err := dataKind.Decode(req.ProposedNewState)
	if err != nil || next.IsNull() {
		return resp, err
	}
	values := next.AsValueMap()
	switch {
	case prior.IsNull():
		values["id"] = cty.UnknownVal(cty.String)
		values["output"] = cty.UnknownVal(values["input"].Type())
		if values["input"].IsNull() {
			values["output"] = cty.NullVal(cty.DynamicPseudoType)
		}
	case !prior.GetAttr("triggers_replace").RawEquals(values["triggers_replace"]):
		values["id"] = cty.UnknownVal(cty.String)
		values["output"] = cty.UnknownVal(values["input"].Type())
		resp.RequiresReplace = []*tftypes.AttributePath{tftypes.NewAttributePath().WithAttributeName("triggers_replace")}
	case !prior.GetAttr("input").RawEquals(values["input"]):
		values["output"] = cty.UnknownVal(values["input"].Type())
	}
	resp.PlannedState = dataKind.Encode(cty.ObjectVal(values))
	return resp, nil
}

// ApplyResourceChange sets the output, and the ID of a new object.
func (builtin) ApplyResourceChange(_ context.Context,
	req *tfprotov6.ApplyResourceChangeRequest,
) (*tfprotov6.ApplyResourceChangeResponse, error) {
	planned, err := dataKind.Decode(req.PlannedState)
	if err != nil || planned.IsNull() {
		return &tfprotov6.ApplyResourceChangeResponse{NewState: req.PlannedState}, err
	}
	values := planned.AsValueMap()
	values["output"] = values["input"]
	if !values["id"].IsKnown() {
		id := make([]byte, 16)
		if _, err := rand.Read(id); err != nil {
			return nil, err
		}
		values["id"] = cty.StringVal(fmt.Sprintf("%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:]))
	}
	return &tfprotov6.ApplyResourceChangeResponse{NewState: dataKind.Encode(cty.ObjectVal(values)), Private: req.PlannedPrivate}, nil
}
