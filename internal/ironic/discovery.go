package ironic

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/gophercloud/gophercloud/v2/openstack/baremetal/v1/nodes"
)

// keyDiscovery is where extra of a node remembers who has discovered it. It is written only under a claim, so a node
// never has two owners, and it dies with the node.
const keyDiscovery = "terraform_metal_discovery"

// abandonedAfter is how old a claim must be to be one that its run has left behind.
const abandonedAfter = 10 * time.Minute

// Discovery is what a node remembers of its discovery.
type Discovery struct {
	Version int    `json:"v"`
	Owner   string `json:"owner"` // name of the metal_discovery_import
	Name    string `json:"name"`  // given once, whatever becomes of the template
	From    string `json:"from"`  // hardware detail that the name was made from
	At      string `json:"at"`    // RFC 3339
}

// DiscoveryOf returns what a node remembers of its discovery; nil if it was not discovered by this provider.
func DiscoveryOf(n *Node) *Discovery {
	text, err := json.Marshal(n.Extra[keyDiscovery])
	var d Discovery
	if err != nil || json.Unmarshal(text, &d) != nil || d.Owner == "" {
		return nil
	}
	return &d
}

// surveyFields is what discovery needs to know of every node.
const surveyFields = "uuid,name,provision_state,instance_uuid,reservation,extra,driver,last_error,created_at,updated_at,maintenance"

// Survey is what Ironic knows of the machines of a site.
type Survey struct {
	Nodes []Node
	// Ports and Inventories are those of the nodes that were asked about; Ports also of all others, if any was.
	Ports       map[string][]Port
	Inventories map[string]*Inventory
}

// Survey lists the site for discovery. want says of which nodes the inventory is needed; if there is none, ports are not
// read either, so that a look at a site without new machines is one list. The nodes have only what discovery needs.
func (c *Client) Survey(ctx context.Context, want func(*Node) bool) (*Survey, error) {
	query, err := c.nodeQuery(ctx, NodeFilter{})
	if err != nil {
		return nil, err
	}
	query.Set("fields", surveyFields)
	s := &Survey{Ports: map[string][]Port{}, Inventories: map[string]*Inventory{}}
	if s.Nodes, err = c.listNodes(ctx, query); err != nil {
		return nil, err
	}
	var wanted []string
	for i := range s.Nodes {
		if want(&s.Nodes[i]) {
			wanted = append(wanted, s.Nodes[i].UUID)
		}
	}
	if len(wanted) == 0 {
		return s, nil
	}
	ports, err := list[Port](ctx, c, "ports/detail", "ports", nil)
	if err != nil {
		return nil, err
	}
	for _, port := range ports {
		s.Ports[port.NodeUUID] = append(s.Ports[port.NodeUUID], port)
	}
	for _, id := range wanted {
		if s.Inventories[id], err = c.Inventory(ctx, id); err != nil {
			return nil, fmt.Errorf("inventory of node %s: %w", id, err)
		}
	}
	return s, nil
}

// Abandoned reports whether a node is held by a claim that some run has left behind.
func (c *Client) Abandoned(n *Node) bool {
	return n.InstanceUUID != "" && n.Name == "" && State(n.ProvisionState) == nodes.Enroll && DiscoveryOf(n) == nil &&
		!n.UpdatedAt.IsZero() && c.serverNow().Sub(n.UpdatedAt) > abandonedAfter
}

// ClaimLostError says that a discovered machine could not be taken.
type ClaimLostError struct{ Reason string }

// Error gives the reason.
func (e *ClaimLostError) Error() string { return e.Reason }

// ClaimDiscovered names a discovered node and marks whose it is. Of several runs that try, exactly one succeeds: the
// claim is a reservation by instance_uuid, Ironic's only compare-and-set, held for the moment of the two requests
// (reference discovery-boot-limit.md 1.7). That the node carries this very mark already is fine. A node that is not to be
// had is a ClaimLostError.
func (c *Client) ClaimDiscovered(ctx context.Context, id string, mark Discovery) error {
	node, err := c.getNode(ctx, id)
	if IsNotFound(err) {
		return &ClaimLostError{Reason: "the node does not exist any more"}
	}
	if err != nil {
		return err
	}
	if d := DiscoveryOf(node); d != nil && d.Owner == mark.Owner {
		return c.restoreName(ctx, node, d)
	}
	if c.Abandoned(node) {
		var free Patch
		free.Remove("/instance_uuid")
		if node, err = c.PatchNode(ctx, id, free); err != nil {
			return err
		}
	}
	claim := NewUUID()
	if node, err = c.take(ctx, node, claim); err != nil {
		return err
	}
	if reason := notToBeHad(node); reason != "" {
		return errors.Join(&ClaimLostError{Reason: reason}, c.letGo(ctx, id, claim))
	}
	var patch Patch
	patch.Set("/name", mark.Name)
	patch.Set("/extra/"+keyDiscovery, mark)
	patch.Remove("/instance_uuid")
	if _, err := c.PatchNode(ctx, id, patch); err != nil {
		// The answer may be lost and the patch not: only a node without the mark is let go.
		if now, look := c.getNode(context.WithoutCancel(ctx), id); look == nil && DiscoveryOf(now) != nil && now.InstanceUUID == "" {
			return nil
		}
		if isStatus(err, http.StatusConflict, "already exists") {
			err = &ClaimLostError{Reason: fmt.Sprintf("the name %s was taken meanwhile", mark.Name)}
		}
		return errors.Join(err, c.letGo(context.WithoutCancel(ctx), id, claim))
	}
	return nil
}

// restoreName repairs a node of ours that is as marked but for its name.
func (c *Client) restoreName(ctx context.Context, node *Node, d *Discovery) error {
	var patch Patch
	if node.Name == "" {
		patch.Set("/name", d.Name)
	}
	if node.InstanceUUID != "" && c.Abandoned(node) {
		patch.Remove("/instance_uuid")
	}
	if len(patch) == 0 {
		return nil
	}
	_, err := c.PatchNode(ctx, node.UUID, patch)
	return err
}

// take reserves a node for the moment, and returns it as it is under the reservation.
func (c *Client) take(ctx context.Context, node *Node, claim string) (*Node, error) {
	lost := &ClaimLostError{Reason: "another run is claiming it"}
	if node.InstanceUUID != "" {
		return nil, lost
	}
	var patch Patch
	patch.Set("/instance_uuid", claim)
	_, err := c.PatchNode(ctx, node.UUID, patch)
	if err != nil && !isStatus(err, http.StatusConflict, "associated") {
		return nil, err
	}
	now, err := c.getNode(ctx, node.UUID)
	if err != nil {
		return nil, err
	}
	if now.InstanceUUID != claim {
		return nil, lost
	}
	return now, nil
}

// notToBeHad is why a node that we hold must not be named after all; "" if it may.
func notToBeHad(n *Node) string {
	switch d := DiscoveryOf(n); {
	case d != nil:
		return "it belongs to " + d.Owner
	case n.Name != "":
		return "somebody has named it " + n.Name
	case State(n.ProvisionState) != nodes.Enroll:
		return "it is in state " + n.ProvisionState
	}
	return ""
}

func (c *Client) letGo(ctx context.Context, id, claim string) error {
	node, err := c.getNode(ctx, id)
	if err != nil || node.InstanceUUID != claim {
		return err
	}
	var patch Patch
	patch.Remove("/instance_uuid")
	_, err = c.PatchNode(ctx, id, patch)
	return err
}

// FindDiscovered returns a node that was discovered and is nobody's yet but discovery's: by name, or by the MAC address of
// a port. nil means that there is none; a node of that name or address that is somebody's is none.
func (c *Client) FindDiscovered(ctx context.Context, name string, addresses []string) (*Node, error) {
	for _, address := range addresses {
		ports, err := list[Port](ctx, c, "ports/detail", "ports", url.Values{"address": {address}})
		if err != nil {
			return nil, err
		}
		if len(ports) > 0 {
			node, err := c.getNode(ctx, ports[0].NodeUUID)
			if err != nil {
				return nil, err
			}
			if adoptable(node) {
				return node, nil
			}
		}
	}
	if name == "" {
		return nil, nil //nolint:nilnil // none is an ordinary answer
	}
	node, err := c.getNode(ctx, name)
	if err == nil && adoptable(node) {
		return node, nil
	}
	if err != nil && !IsNotFound(err) {
		return nil, err
	}
	return nil, nil //nolint:nilnil // likewise
}

// adoptable reports whether a node was discovered and not taken over: by this provider's mark, or because it has no name.
func adoptable(n *Node) bool {
	return n.InstanceUUID == "" && (DiscoveryOf(n) != nil || (n.Name == "" && State(n.ProvisionState) == nodes.Enroll))
}
