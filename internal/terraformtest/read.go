package terraformtest

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hcldec"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/vmihailenco/msgpack/v5"
	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"
)

// references returns the references of a block.
func (k *Kind) references(body hcl.Body) []hcl.Traversal { return hcldec.Variables(body, k.spec) }

// value returns the value of an instance, which may not be upgraded yet.
func (i *Instance) value(of *Kind) (cty.Value, error) {
	if i.raw == nil {
		return i.Value, nil
	}
	return ctyjson.Unmarshal(i.raw.Attributes, of.Type)
}

// dependingOn returns an instance with further dependencies.
func (i *Instance) dependingOn(more []string) *Instance {
	all := append(slices.Clone(i.After), more...)
	slices.Sort(all)
	if all = slices.Compact(all); len(all) == 0 {
		all = nil
	}
	if slices.Equal(all, i.After) {
		return i
	}
	made := *i
	made.After, made.raw = all, nil
	return &made
}

// upgrade lets the provider decode an instance of a state file.
func (r *run) upgrade(at address, block *resource, p *Provider, of *Kind, i *Instance) (*Instance, bool) {
	version, attributes, isStored := i.stored()
	if !isStored {
		return i, true
	}
	resp, ok := call(r, at, block, r.server(p).UpgradeResourceState, &tfprotov6.UpgradeResourceStateRequest{TypeName: of.name, Version: version, RawState: &tfprotov6.RawState{JSON: attributes}})
	if !ok {
		return i, false
	}
	value, err := of.Decode(resp.UpgradedState)
	if err != nil {
		return i, r.broken(at, "Invalid resource state upgrade", err.Error())
	}
	return i.upgraded(value), true
}

// stored returns what a state file has of an instance, if the provider has not upgraded that yet.
func (i *Instance) stored() (version int64, attributes json.RawMessage, is bool) {
	if i.raw == nil {
		return 0, nil, false
	}
	return i.raw.SchemaVersion, i.raw.Attributes, true
}

// upgraded returns an instance with the value that the provider has made of what a state file has.
func (i *Instance) upgraded(value cty.Value) *Instance {
	made := *i
	made.Value, made.raw = value, nil
	return &made
}

// refresh upgrades and reads an instance; it only upgrades it if reading is not wished. It returns nil if the object is gone.
func (r *run) refresh(at address, block *resource, p *Provider, of *Kind, i *Instance, reads bool) (*Instance, bool) {
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
	read.Tainted, read.After, read.secrets = i.Tainted, i.After, i.secrets
	return read, true
}

// readInstance reads an instance.
func (r *run) readInstance(at address, block *resource, p *Provider, of *Kind, i *Instance) (*Instance, bool) {
	resp, ok := call(r, at, block, r.server(p).ReadResource, &tfprotov6.ReadResourceRequest{
		TypeName: of.name, CurrentState: of.Encode(i.Value), Private: i.Private, CurrentIdentity: i.Identity,
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
	return &Instance{Value: value, Private: resp.Private, Identity: identity}, true
}

// importOne imports an object and reads it.
func (r *run) importOne(at address, block *resource, id string) (*Instance, bool) {
	of, p := block.kind, block.provider
	r.output.say("%s: Preparing import... [id=%s]", at, id)
	resp, ok := call(r, at, block, r.server(p).ImportResourceState, &tfprotov6.ImportResourceStateRequest{TypeName: of.name, ID: id, ClientCapabilities: &tfprotov6.ImportResourceStateClientCapabilities{}})
	if !ok {
		return nil, false
	}
	if len(resp.ImportedResources) != 1 || resp.ImportedResources[0].TypeName != of.name {
		return nil, r.broken(at, "Import returned no or several resources", fmt.Sprintf("%d resources", len(resp.ImportedResources)))
	}
	from := resp.ImportedResources[0]
	value, err := of.Decode(from.State)
	if err != nil {
		return nil, r.broken(at, "Provider produced invalid object", err.Error())
	}
	r.output.say("%s: Refreshing state...%s", at, idOf(value))
	i, ok := r.readInstance(at, block, p, of, &Instance{Value: value, Private: from.Private, Identity: from.Identity})
	if ok && i == nil {
		r.add(diagnostic{isError: true, summary: "Cannot import non-existent remote object", address: at.String(), detail: fmt.Sprintf("While attempting to import an existing object to %q, "+
			"the provider detected that no object exists with the given id. Only pre-existing objects can be imported; check that the id is correct and that it is associated with the provider's configured region or endpoint, or use \"terraform apply\" to create a new remote object for this resource.", at)})
		return nil, false
	}
	return i, ok
}

// msgpackJSON converts an object of simple values.
func msgpackJSON(text []byte) (json.RawMessage, error) {
	var values map[string]any
	if err := msgpack.Unmarshal(text, &values); err != nil {
		return nil, err
	}
	return json.Marshal(values)
}

// value decodes an output.
func (o storedOutput) value() (cty.Value, error) {
	of, err := ctyjson.UnmarshalType(o.Type)
	if err != nil {
		return cty.NilVal, err
	}
	return ctyjson.Unmarshal(o.Value, of)
}

// sameAs reports whether two states have the same managed instances.
func (s *state) sameAs(other *state, from Providers) bool {
	if len(s.instances) != len(other.instances) {
		return false
	}
	for at, i := range s.instances {
		_, kind := from.kind(kindName(at.resource))
		if !i.decoded(kind).equal(other.instances[at].decoded(kind)) {
			return false
		}
	}
	return true
}

// decoded returns an instance with its value, though it may not be upgraded yet; nil for nil.
func (i *Instance) decoded(of *Kind) *Instance {
	if i == nil || i.raw == nil {
		return i
	}
	made := *i
	value, err := i.value(of)
	if made.Value = value; err != nil {
		made.Value = of.Null() // another version
	}
	return &made
}
