package found

import (
	"context"
	"time"

	"github.com/gophercloud/gophercloud/v2/openstack/baremetal/v1/nodes"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/notes"
)

// Likely reports whether a node may have been discovered: it has this provider's record, or no name and the state enroll.
func Likely(n *ironic.Node) bool {
	return notes.DiscoveryOf(n) != nil || (n.Name == "" && ironic.State(n.ProvisionState) == nodes.Enroll)
}

// Unnamed reports whether a node was discovered and has no name yet.
func Unnamed(ctx context.Context, site *machine.Site, n *ironic.Node) (bool, error) {
	if n.Name != "" || !machine.Unmanaged(n) {
		return false, nil
	}
	if notes.DiscoveryOf(n) != nil || !enrolledManually(n, nil) {
		return true, nil
	}
	inventory, err := site.Ironic.Inventory(ctx, n.UUID)
	return err == nil && !enrolledManually(n, inventory), err
}

// enrolledManually reports whether an operator or a client enrolled the node, judging by its driver_info. Ironic sets none on a node that
// it discovers, and ironic-inspector sets the IPMI address of the BMC only. Inspection rules may set more, but then the node has an
// inventory.
func enrolledManually(n *ironic.Node, inventory *ironic.Inventory) bool {
	_, byInspector := n.DriverInfo["ipmi_address"]
	isTold := len(n.DriverInfo) > 1 || len(n.DriverInfo) == 1 && !byInspector
	return n.Extra[notes.KeyEnrolled] != nil || isTold && inventory == nil
}

// MarkTaken adds the edits to a patch which record that the metal_host with a name manages the node, if discovery needs to
// know that and the node does not say so yet. name may be empty.
func MarkTaken(p *ironic.Patch, n *ironic.Node, name string) {
	switch d := notes.DiscoveryOf(n); {
	case d != nil && !d.Taken:
		d.Taken = true
		p.Set("/extra/"+notes.KeyDiscovery, *d)
	case d == nil && n.Driver == machine.FakeDriver && machine.LooksDiscovered(n): // its power is not real
		p.Set("/extra/"+notes.KeyDiscovery, notes.Discovery{
			Version: 1, Owner: "metal_host", Name: name, From: "boot-mac",
			At: time.Now().UTC().Format(time.RFC3339), Taken: true,
		})
	case d == nil && n.Name == "" && ironic.State(n.ProvisionState) == nodes.Enroll && n.Extra[notes.KeyEnrolled] == nil:
		p.Set("/extra/"+notes.KeyEnrolled, true)
	}
}

// ownRecord is DiscoveryOf without the records on nodes of other projects, whose users may have written them.
func ownRecord(site *machine.Site, n *ironic.Node) *notes.Discovery {
	if site.IsOfOthers(n) {
		return nil
	}
	return notes.DiscoveryOf(n)
}
