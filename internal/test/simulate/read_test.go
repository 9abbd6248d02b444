package simulate_test

import (
	"slices"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"
)

// importOne imports what exists, as an import block does.
func (w *workspace) importOne(p *process, c *change, id string) (*instance, error) {
	resp, err := rpc(p, p.server.ImportResourceState, &tfprotov6.ImportResourceStateRequest{TypeName: kindName(c.address), ID: id})
	if err != nil {
		return nil, err
	}
	if p.said(c.address, resp.Diagnostics) || len(resp.ImportedResources) != 1 {
		return nil, errFailed
	}
	imported := resp.ImportedResources[0]
	value := p.decode(c.address, c.kind, imported.State, imported.Private)
	read, err := w.refresh(p, c, &instance{
		value: value, private: imported.Private, identity: imported.Identity,
		after: slices.Clone(c.after),
	})
	if err == nil && read == nil {
		w.site.tell("%s: %s does not exist, so it is not imported", p.run, c.address)
		err = errFailed
	}
	return read, err
}

// readData reads a data source during a plan. All it depends on is known.
func (w *workspace) readData(p *process, c *change, config cty.Value) error {
	resp, err := rpc(p, p.server.ReadDataSource, &tfprotov6.ReadDataSourceRequest{
		TypeName: kindName(c.address)[len(dataPrefix):],
		Config:   encode(c.kind.kind, config),
	})
	if err != nil {
		return err
	}
	c.action = keep
	if c.planned = p.decode(c.address, c.kind, resp.State, nil); p.said(c.address, resp.Diagnostics) {
		return errFailed
	}
	w.site.played.addValue(kindName(c.address), c.planned, false)
	return nil
}

// upgrade lets the provider upgrade a state that was read from a file.
func (w *workspace) upgrade(p *process, c *change, i *instance) (*tfprotov6.DynamicValue, error) {
	if i.upgraded != nil {
		return i.upgraded, nil
	}
	text, err := ctyjson.Marshal(i.value, c.kind.kind)
	if err != nil {
		return nil, err
	}
	resp, err := rpc(p, p.server.UpgradeResourceState, &tfprotov6.UpgradeResourceStateRequest{
		TypeName: kindName(c.address), Version: c.kind.version, RawState: &tfprotov6.RawState{JSON: text},
	})
	if err == nil && p.said(c.address, resp.Diagnostics) {
		err = errFailed
	}
	if err != nil {
		return nil, err
	}
	i.upgraded = encode(c.kind.kind, p.decode(c.address, c.kind, resp.UpgradedState, nil))
	return i.upgraded, nil
}
