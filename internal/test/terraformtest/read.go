package terraformtest

import (
	"fmt"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/zclconf/go-cty/cty"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/terraformtest/language"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/terraformtest/schema"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/terraformtest/state"
)

// upgrade lets the provider decode an instance of a state file.
func (r *run) upgrade(at state.Address, block *language.Resource, p *schema.Provider, of *schema.Kind,
	i *state.Instance,
) (*state.Instance, bool) {
	version, attributes, isStored := i.Stored()
	if !isStored {
		return i, true
	}
	resp, ok := call(r, at, block, r.server(p).UpgradeResourceState, &tfprotov6.UpgradeResourceStateRequest{
		TypeName: of.Name,
		Version:  version, RawState: &tfprotov6.RawState{JSON: attributes},
	})
	if !ok {
		return i, false
	}
	value, err := of.Decode(resp.UpgradedState)
	if err != nil {
		return i, r.broken(at, "Invalid resource state upgrade", err.Error())
	}
	return i.Upgraded(value), true
}

// refresh upgrades and reads an instance; it only upgrades it if reading is not wished. It returns nil if the object is gone.
func (r *run) refresh(at state.Address, block *language.Resource, p *schema.Provider, of *schema.Kind, i *state.Instance,
	reads bool,
) (*state.Instance, bool) {
	if i == nil {
		return nil, true
	}
	i, ok := r.upgrade(at, block, p, of, i)
	if !ok || !reads {
		return i, ok
	}
	r.output.say("%s: Refreshing state...%s", at, idOf(i.Value))
	read, ok := r.readInstance(at, block, p, of, i)
	if !ok || read == nil {
		return read, ok
	}
	read.Tainted, read.After, read.Secrets = i.Tainted, i.After, i.Secrets
	return read, true
}

// readInstance reads an instance.
func (r *run) readInstance(at state.Address, block *language.Resource, p *schema.Provider, of *schema.Kind,
	i *state.Instance,
) (*state.Instance, bool) {
	resp, ok := call(r, at, block, r.server(p).ReadResource, &tfprotov6.ReadResourceRequest{
		TypeName: of.Name, CurrentState: of.Encode(i.Value), Private: i.Private, CurrentIdentity: i.Identity,
		ClientCapabilities: &tfprotov6.ReadResourceClientCapabilities{},
	})
	if !ok {
		return i, false
	}
	value, err := of.Decode(resp.NewState)
	switch {
	case err != nil:
		return i, r.broken(at, "Provider produced invalid object", err.Error())
	case value.IsNull():
		return nil, true
	case !value.IsWhollyKnown():
		return i, r.broken(at, "Provider produced invalid object", "A read has returned unknown values.")
	}
	identity := resp.NewIdentity
	if identity == nil {
		identity = i.Identity
	}
	return &state.Instance{Value: value, Private: resp.Private, Identity: identity}, true
}

// importOne imports an object and reads it.
func (r *run) importOne(at state.Address, block *language.Resource, id string) (*state.Instance, bool) {
	of, p := block.Kind, block.Provider
	r.output.say("%s: Preparing import... [id=%s]", at, id)
	resp, ok := call(r, at, block, r.server(p).ImportResourceState, &tfprotov6.ImportResourceStateRequest{
		TypeName: of.Name, ID: id,
		ClientCapabilities: &tfprotov6.ImportResourceStateClientCapabilities{},
	})
	if !ok {
		return nil, false
	}
	if len(resp.ImportedResources) != 1 || resp.ImportedResources[0].TypeName != of.Name {
		return nil, r.broken(at, "Import returned no or several resources", fmt.Sprintf("%d resources", len(resp.ImportedResources)))
	}
	from := resp.ImportedResources[0]
	value, err := of.Decode(from.State)
	if err != nil {
		return nil, r.broken(at, "Provider produced invalid object", err.Error())
	}
	r.output.say("%s: Refreshing state...%s", at, idOf(value))
	i, ok := r.readInstance(at, block, p, of, &state.Instance{Value: value, Private: from.Private, Identity: from.Identity})
	if ok && i == nil {
		r.Add(language.Diagnostic{
			IsError: true, Summary: "Cannot import non-existent remote object", Address: at.String(),
			Detail: fmt.Sprintf("While attempting to import an existing object to %q, the provider detected that no object exists with "+
				"the given id. Only pre-existing objects can be imported; check that the id is correct and that it is associated with "+
				"the provider's configured region or endpoint, or use \"terraform apply\" to create a new remote object for this resource.",
				at),
		})
		return nil, false
	}
	return i, ok
}

// readData reads a data source.
func (r *run) readData(at state.Address, block *language.Resource, config cty.Value) (cty.Value, bool) {
	r.output.say("%s: Reading...", at)
	resp, ok := call(r, at, block, r.server(block.Provider).ReadDataSource, &tfprotov6.ReadDataSourceRequest{
		TypeName: block.Kind.Name,
		Config:   block.Kind.Encode(config),
	})
	if !ok {
		return cty.NilVal, false
	}
	value, err := block.Kind.Decode(resp.State)
	switch {
	case err != nil:
		return cty.NilVal, r.broken(at, "Provider produced invalid object", err.Error())
	case value.IsNull() || !value.IsWhollyKnown():
		return cty.NilVal, r.broken(at, "Provider produced invalid object", "The data source is null, or not wholly known.")
	}
	r.output.say("%s: Read complete after 0s%s", at, idOf(value))
	return value, true
}
