package ironic

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/gophercloud/gophercloud/v2/openstack/baremetal/v1/nodes"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/discovery"
)

// keyDiscovery is where extra of a node remembers who has discovered it. It is written only under a claim, so a node
// never has two owners, and it dies with the node.
const keyDiscovery = "terraform_metal_discovery"

// abandonedAfter is how old a claim must be to be one that its run has left behind.
const abandonedAfter = 10 * time.Minute

// Discovery is what a node remembers of its discovery.
type Discovery struct {
	Version int    `json:"v"`
	Owner   string `json:"owner"`           // name of the metal_discovery_import
	Name    string `json:"name"`            // given once, whatever becomes of the template
	From    string `json:"from"`            // hardware detail that the name was made from
	At      string `json:"at"`              // RFC 3339
	Taken   bool   `json:"taken,omitempty"` // a metal_host manages it
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

// keyEnrolled marks, in extra, a node without a name that a metal_host manages, so that discovery does not take it for nobody's.
const keyEnrolled = "terraform_metal_enrolled"

// TakeDiscovered adds to a patch that a metal_host manages the node from now on, where discovery has to know it and does not yet.
func (p *Patch) TakeDiscovered(n *Node) {
	switch d := DiscoveryOf(n); {
	case d != nil && !d.Taken:
		d.Taken = true
		p.Set("/extra/"+keyDiscovery, *d)
	case d == nil && n.Name == "" && State(n.ProvisionState) == nodes.Enroll && n.Extra[keyEnrolled] == nil:
		p.Set("/extra/"+keyEnrolled, true)
	}
}

// byHand reports whether somebody has enrolled a node, going by what its driver knows: of what it discovers, Ironic tells the
// driver nothing, and ironic-inspector the address of the BMC for IPMI. Rules may tell it more, but then there is an inventory.
func byHand(n *Node, inventory *Inventory) bool {
	_, byInspector := n.DriverInfo["ipmi_address"]
	isTold := len(n.DriverInfo) > 1 || len(n.DriverInfo) == 1 && !byInspector
	return n.Extra[keyEnrolled] != nil || isTold && inventory == nil
}

// surveyFields is what discovery needs to know of every node. When a node was created and changed Ironic tells only
// together with everything else about it.
const surveyFields = "uuid,name,provision_state,instance_uuid,reservation,extra,driver,last_error"

// Survey is what a look at a site has shown, as far as it matters for one discovery. It can be kept as JSON.
type Survey struct {
	Hosts []discovery.Host `json:"hosts"` // unnamed machines, those of the discovery, and those that share an address with one
	Names []string         `json:"names"` // of all other nodes

	Unmarked []string `json:"unmarked"` // UUIDs of held hosts that have lost their mark

	Exists   map[string]bool   `json:"-"` // nodes by UUID
	Renamed  map[string]string `json:"-"` // held hosts that are called otherwise now: given name -> name
	Replaced map[string]string `json:"-"` // held hosts whose node is gone, and whose name another one has: given name -> its UUID
}

// All are the hosts to decide about: those of the survey, and one for every other name that is taken.
func (s *Survey) All() []discovery.Host {
	all := slices.Clone(s.Hosts)
	for _, name := range s.Names {
		all = append(all, discovery.Host{ID: "named " + name, Name: name})
	}
	return all
}

// Survey looks at a site for the discovery of an owner, who may be "". held are the nodes, with the names given to them,
// of which everything is known already: a site without new machines costs one list of its nodes. Else the nodes in enroll
// and the ports are listed too, and the inventory of each new machine is read.
func (c *Client) Survey(ctx context.Context, owner string, held map[string]string) (*Survey, error) {
	query, err := c.nodeQuery(ctx, NodeFilter{})
	if err != nil {
		return nil, err
	}
	query.Set("fields", surveyFields)
	all, err := c.listNodes(ctx, query)
	if err != nil {
		return nil, err
	}
	held, replaced := follow(held, all)
	isNew := func(n *Node) bool {
		mark := DiscoveryOf(n)
		return held[n.UUID] == "" && (mark == nil && n.Name == "" && State(n.ProvisionState) == nodes.Enroll || mark != nil && mark.Owner == owner)
	}
	facts, err := c.facts(ctx, all, isNew)
	if err != nil {
		return nil, err
	}
	s := &Survey{Exists: map[string]bool{}, Renamed: map[string]string{}, Replaced: replaced}
	for i := range all {
		node := &all[i]
		s.Exists[node.UUID] = true
		switch name := held[node.UUID]; {
		case name != "":
			if node.Name != "" && node.Name != name {
				s.Renamed[name] = node.Name
			}
			if DiscoveryOf(node) == nil {
				s.Unmarked = append(s.Unmarked, node.UUID)
			}
			h := c.discovered(node, facts)
			h.Owner, h.OwnerName = owner, name
			s.Hosts = append(s.Hosts, h)
		case isNew(node) || facts.sharesAddress(node):
			s.Hosts = append(s.Hosts, c.discovered(node, facts))
		case node.Name != "":
			s.Names = append(s.Names, node.Name)
		}
	}
	slices.Sort(s.Names)
	return s, nil
}

// follow gives the hosts that were replaced, by deleting a node and enrolling it again under its name, as their new nodes.
// A node that discovery has marked is none of these: that was discovered anew.
func follow(held map[string]string, all []Node) (now, replaced map[string]string) {
	exists := byUUID(all, func(n *Node) string { return n.UUID })
	named := byUUID(all, func(n *Node) string { return n.Name })
	now, replaced = maps.Clone(held), map[string]string{}
	for id, name := range held {
		heir := named[name]
		if exists[id] != nil || heir == nil || held[heir.UUID] != "" || DiscoveryOf(heir) != nil {
			continue
		}
		delete(now, id)
		now[heir.UUID], replaced[name] = name, heir.UUID
	}
	return now, replaced
}

// facts are the ports of all nodes, and the inventories and addresses of new machines. All are empty if there are none.
type facts struct {
	ports       map[string][]Port
	inventories map[string]*Inventory
	addresses   map[string]bool
}

func (c *Client) facts(ctx context.Context, all []Node, isNew func(*Node) bool) (*facts, error) {
	f := &facts{ports: map[string][]Port{}, inventories: map[string]*Inventory{}, addresses: map[string]bool{}}
	for i := range all {
		if !isNew(&all[i]) {
			continue
		}
		inventory, err := c.Inventory(ctx, all[i].UUID)
		if err != nil {
			return nil, fmt.Errorf("inventory of node %s: %w", all[i].UUID, err)
		}
		f.inventories[all[i].UUID] = inventory
		for _, address := range inventory.addresses() {
			f.addresses[address] = true
		}
	}
	if len(f.inventories) == 0 {
		return f, nil
	}
	if err := c.readEnrolled(ctx, all); err != nil {
		return nil, err
	}
	ports, err := list[Port](ctx, c, "ports/detail", "ports", nil)
	if err != nil {
		return nil, err
	}
	for _, port := range ports {
		f.ports[port.NodeUUID] = append(f.ports[port.NodeUUID], port)
		if _, isNew := f.inventories[port.NodeUUID]; isNew {
			f.addresses[strings.ToLower(port.Address)] = true
		}
	}
	return f, nil
}

// readEnrolled adds to nodes when they were created and changed, and what their drivers know; to those in enroll, of which
// discovery has to know it.
func (c *Client) readEnrolled(ctx context.Context, all []Node) error {
	enrolled, err := c.ListNodes(ctx, NodeFilter{ProvisionState: string(nodes.Enroll)})
	if err != nil {
		return err
	}
	known := byUUID(enrolled, func(n *Node) string { return n.UUID })
	for i := range all {
		if node := known[all[i].UUID]; node != nil {
			all[i].CreatedAt, all[i].UpdatedAt, all[i].DriverInfo = node.CreatedAt, node.UpdatedAt, node.DriverInfo
		}
	}
	return nil
}

// sharesAddress reports whether a node has a MAC address that a new machine reports.
func (f *facts) sharesAddress(n *Node) bool {
	return slices.ContainsFunc(f.ports[n.UUID], func(p Port) bool { return f.addresses[strings.ToLower(p.Address)] })
}

// discovered is a node in the terms of discovery.
func (c *Client) discovered(node *Node, f *facts) discovery.Host {
	h := discovery.Host{
		ID: node.UUID, CreatedAt: node.CreatedAt, State: node.ProvisionState, Name: node.Name, Driver: node.Driver, LastError: node.LastError,
		Reserved: node.InstanceUUID != "" && !c.Abandoned(node), Locked: node.Reservation != "",
	}
	if mark := DiscoveryOf(node); mark != nil {
		h.Owner, h.OwnerName = mark.Owner, mark.Name
	}
	for _, port := range f.ports[node.UUID] {
		h.PortMACs = append(h.PortMACs, strings.ToLower(port.Address))
		if port.PXEEnabled {
			h.PXEMACs = append(h.PXEMACs, strings.ToLower(port.Address))
		}
	}
	slices.Sort(h.PortMACs)
	slices.Sort(h.PXEMACs)
	i := f.inventories[node.UUID]
	h.ByHand = byHand(node, i)
	if i == nil {
		return h
	}
	h.HasInventory = true
	h.Hostname, h.Serial, h.Manufacturer, h.Product = i.Hostname, i.System.Serial, i.System.Manufacturer, i.System.Product
	h.BMCAddress, h.PXEInterface, h.CPUs, h.MemoryMB = i.BMC(), i.Boot.PXEInterface, i.CPU.Count, i.Memory.PhysicalMB
	for _, nic := range i.Interfaces {
		h.Interfaces = append(h.Interfaces, discovery.Interface{
			Name: nic.Name, MAC: nic.MAC, IPv4: nic.IPv4, IPv6: nic.IPv6, PCIAddress: nic.PCIAddress, HasCarrier: nic.HasCarrier != nil && *nic.HasCarrier,
		})
	}
	return h
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
		return errGone()
	}
	if err != nil {
		return err
	}
	if d := DiscoveryOf(node); d != nil && d.Owner == mark.Owner {
		if d.Name != mark.Name {
			return &ClaimLostError{Reason: "another run of " + d.Owner + " has named it " + d.Name}
		}
		return c.restoreName(ctx, node, d)
	}
	claim := NewUUID()
	taken, err := c.take(ctx, node, claim)
	if err != nil {
		return err
	}
	if reason := notToBeHad(taken); reason != "" {
		return errors.Join(&ClaimLostError{Reason: reason}, c.letGo(ctx, id, claim))
	}
	var patch Patch
	patch.Set("/name", mark.Name)
	patch.Set("/extra/"+keyDiscovery, mark)
	patch.Remove("/instance_uuid")
	_, err = c.PatchNode(ctx, id, patch)
	if err == nil {
		return nil
	}
	// The answer may be lost and the patch not: only a node without the mark is let go.
	if now, look := c.getNode(context.WithoutCancel(ctx), id); look == nil && now.Name == mark.Name && now.InstanceUUID == "" {
		if d := DiscoveryOf(now); d != nil && *d == mark {
			return nil
		}
	}
	switch {
	case isStatus(err, http.StatusConflict, "already exists"):
		err = &ClaimLostError{Reason: fmt.Sprintf("the name %s was taken meanwhile", mark.Name)}
	case IsNotFound(err):
		return errGone()
	}
	return errors.Join(err, c.letGo(ctx, id, claim))
}

func errGone() error { return &ClaimLostError{Reason: "the node does not exist any more"} }

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

// MarkDiscovered gives a node back the mark that somebody has taken away. A mark that it has stays.
func (c *Client) MarkDiscovered(ctx context.Context, id string, mark Discovery) error {
	node, err := c.getNode(ctx, id)
	if err != nil || DiscoveryOf(node) != nil {
		return err
	}
	var patch Patch
	patch.Set("/extra/"+keyDiscovery, mark)
	_, err = c.PatchNode(ctx, id, patch)
	return err
}

// take reserves a node for the moment, and returns it as it is under the reservation. If it fails, it holds nothing.
func (c *Client) take(ctx context.Context, node *Node, claim string) (*Node, error) {
	if c.Abandoned(node) {
		if err := c.freeAbandoned(ctx, node); err != nil {
			return nil, err
		}
	} else if node.InstanceUUID != "" {
		return nil, errClaimed()
	}
	var patch Patch
	patch.Set("/instance_uuid", claim)
	_, err := c.PatchNode(ctx, node.UUID, patch)
	var now *Node
	if err == nil || isStatus(err, http.StatusConflict, "associated") {
		now, err = c.getNode(ctx, node.UUID)
	}
	switch {
	case IsNotFound(err):
		return nil, errGone()
	case err != nil: // the claim may have arrived all the same
		return nil, errors.Join(err, c.letGo(ctx, node.UUID, claim))
	case now.InstanceUUID != claim:
		return nil, errClaimed()
	}
	return now, nil
}

func errClaimed() error { return &ClaimLostError{Reason: "another run is claiming it"} }

// freeAbandoned takes away the claim of a run that died. Only one of those who want to may, lest a late one take away the
// claim of an early one.
func (c *Client) freeAbandoned(ctx context.Context, node *Node) error {
	mine, err := c.takeOver(ctx, node.InstanceUUID, abandonedAfter, func() error { return c.letGo(ctx, node.UUID, node.InstanceUUID) })
	switch {
	case err == nil && !mine:
		return errClaimed()
	case err != nil && isForbidden(err): // who may not write such records does without
		return c.letGo(ctx, node.UUID, node.InstanceUUID)
	}
	return err
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

// letGo ends a claim if it is still there, also when the run is interrupted: a claim that stays delays everybody.
func (c *Client) letGo(ctx context.Context, id, claim string) error {
	ctx = context.WithoutCancel(ctx)
	node, err := c.getNode(ctx, id)
	if IsNotFound(err) {
		return nil
	}
	if err != nil || node.InstanceUUID != claim {
		return err
	}
	var patch Patch
	patch.Remove("/instance_uuid")
	_, err = c.PatchNode(ctx, id, patch)
	return err
}

// FindDiscovered returns the node that a new host of a name and of ports takes over: one in enroll that discovery has named so, or an
// unnamed one in enroll with such a port that nobody has enrolled by hand. nil means that there is none, and that the ports are
// free; it is for the enrolling to find that the name is not. An address that another node has is an error.
func (c *Client) FindDiscovered(ctx context.Context, name string, addresses []string) (*Node, error) {
	var found *Node
	if name != "" {
		node, err := c.getNode(ctx, name)
		switch {
		case IsNotFound(err):
		case err != nil:
			return nil, err
		case DiscoveryOf(node) == nil || !adoptable(node):
			return nil, nil //nolint:nilnil // none is an ordinary answer
		default:
			found = node
		}
	}
	for _, address := range addresses {
		ports, err := list[Port](ctx, c, "ports/detail", "ports", url.Values{"address": {address}})
		if err != nil {
			return nil, err
		}
		if len(ports) == 0 || found != nil && found.UUID == ports[0].NodeUUID {
			continue
		}
		node, err := c.getNode(ctx, ports[0].NodeUUID)
		if err != nil {
			return nil, err
		}
		free, err := c.unnamed(ctx, node)
		switch {
		case err != nil:
			return nil, err
		case !free || found != nil:
			return nil, &StatusError{
				Status: http.StatusConflict, Message: fmt.Sprintf("A port with MAC address %s already exists, on node %s.", address, NodeLabel(node)),
			}
		}
		found = node
	}
	return found, nil
}

// unnamed reports whether a node was discovered and has no name yet.
func (c *Client) unnamed(ctx context.Context, n *Node) (bool, error) {
	if n.Name != "" || !adoptable(n) {
		return false, nil
	}
	if DiscoveryOf(n) != nil || !byHand(n, nil) {
		return true, nil
	}
	inventory, err := c.Inventory(ctx, n.UUID)
	return err == nil && !byHand(n, inventory), err
}

// adoptable reports whether nobody uses, claims or manages a node in enroll.
func adoptable(n *Node) bool {
	d := DiscoveryOf(n)
	return n.InstanceUUID == "" && State(n.ProvisionState) == nodes.Enroll && (d == nil || !d.Taken)
}

// Discovered reports whether a node may have been discovered: by this provider's mark, or because it has no name.
func Discovered(n *Node) bool {
	return DiscoveryOf(n) != nil || (n.Name == "" && State(n.ProvisionState) == nodes.Enroll)
}
