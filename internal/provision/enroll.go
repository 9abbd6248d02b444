package provision

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
)

// CandidateOf returns what no other node may have too, of a new host with some settings and ports.
func CandidateOf(settings ironic.Settings, cabling Cabling) Candidate {
	who := Candidate{
		UUID: ironic.NewUUID(), Name: settings.Text("name"), Driver: settings.Text("driver"), DriverInfo: settings.Keys("driver_info"),
		Addresses: slices.Sorted(maps.Keys(cabling.Ports)), Tenant: Tenant{Owner: settings.Text("owner"), Lessee: settings.Text("lessee")},
	}
	for _, group := range cabling.Groups {
		if group.Address != "" {
			who.Bonds = append(who.Bonds, group.Address)
		}
	}
	slices.Sort(who.Bonds)
	return who
}

// EnrollHost creates the node of a new host, or takes over a discovered one: the node with the configured name, or an unnamed node
// with the configured BMC or port. It also takes over a node that a killed run has begun to create, and returns what it has taken over; nil
// if it has created the node. If another node gets the name meanwhile, it tries once more to take it over.
func (c *Site) EnrollHost(ctx context.Context, settings ironic.Settings, cabling Cabling, limit time.Duration) (*Machine, *Found, error) {
	who, deadline := CandidateOf(settings, cabling), time.Now().Add(limit)
	for try := 1; ; try++ {
		found, err := c.Admit(ctx, who, deadline)
		if err == nil && found != nil {
			err = c.nameDiscovered(ctx, found, who.Name)
		}
		if err != nil {
			return nil, nil, err
		}
		if found != nil {
			return c.Record(found.Node), found, nil
		}
		node, err := c.Enroll(ctx, who.UUID, settings)
		if err == nil {
			return c.Record(node), nil, nil
		}
		c.NotMade(who.UUID)
		if !isDuplicate(err) || try > 1 {
			return nil, nil, err
		}
		c.Refused()
	}
}

// isDuplicate reports whether Ironic refused because another node has the name, the BMC or the port.
func isDuplicate(err error) bool { return ironic.IsStatus(err, http.StatusConflict, "already exists") }

// nameDiscovered names a discovered node after the host that takes it over, unless it has a name.
func (c *Site) nameDiscovered(ctx context.Context, found *Found, name string) error {
	id := found.Node.UUID
	if found.By != nil || name == "" || DiscoveryOf(found.Node) != nil {
		return nil
	}
	err := c.ClaimDiscovered(ctx, id, Discovery{Version: 1, Owner: "metal_host", Name: name, From: "boot-mac", At: time.Now().UTC().Format(time.RFC3339)})
	if err == nil {
		found.Node, err = c.Node(ctx, id)
	}
	if err != nil {
		c.NotMade(id)
	}
	return err
}

// Unmake deletes the node that this run has created, if the host failed because another node has the MAC address of one of its ports. It
// returns the reason of the failure, and whether the node is gone.
func (m *Machine) Unmake(ctx context.Context, failed error) (gone bool, why error) {
	var refused *portError
	if !isDuplicate(failed) || !errors.As(failed, &refused) {
		return false, failed
	}
	m.site.Refused()
	ctx = context.WithoutCancel(ctx)
	if err := m.CheckCreation(ctx); err != nil {
		return false, err
	}
	if err := m.site.DeleteNode(ctx, m.node.UUID); err != nil {
		return false, errors.Join(refused, err)
	}
	m.site.NotMade(m.node.UUID)
	if other, err := m.site.FindNode(ctx, refused.address); err == nil {
		return true, (&Taken{What: SharedAddress, Value: refused.address, Node: other}).Err()
	}
	return true, refused
}
