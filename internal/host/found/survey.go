// Package found reads, names and claims the nodes that Ironic has made for machines which it did not know. Package naming decides which
// of them a discovery takes, and under what name.
package found

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/gophercloud/gophercloud/v2/openstack/baremetal/v1/nodes"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/host/naming"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/driverinfo"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/notes"
)

// Survey is the part of a site that matters for one discovery. It can be stored as JSON.
type Survey struct {
	// unnamed machines, those of the discovery, and those that share a MAC or BMC address with one of them
	Hosts []naming.Host `json:"hosts"`
	Names []string      `json:"names"` // names of all other nodes

	Unmarked []string `json:"unmarked"`       // UUIDs of held hosts that have lost their discovery record
	Late     []string `json:"late,omitempty"` // UUIDs of held hosts that their own claim has reserved again

	Exists map[string]bool `json:"-"` // nodes by UUID
	// held hosts whose node was deleted and whose name another node has: given name -> UUID of that node
	Replaced map[string]string `json:"-"`

	held  map[string]string // UUIDs of held hosts, with the names that they were given
	fresh bool              // there are new machines
}

// News returns the part of the survey that a plan needs: nil if no machine is new and no held host has lost its record. It has
// nothing of held hosts that changes while they are prepared and deployed, so that it stays the same while no other machine
// changes.
func (s *Survey) News() *Survey {
	if !s.fresh && len(s.Unmarked) == 0 && len(s.Late) == 0 {
		return nil
	}
	news := &Survey{Hosts: slices.Clone(s.Hosts), Names: s.Names, Unmarked: s.Unmarked, Late: s.Late}
	for i, h := range news.Hosts {
		if s.held[h.ID] != "" {
			news.Hosts[i].State, news.Hosts[i].LastError = "", ""
			news.Hosts[i].CreatedAt, news.Hosts[i].ChangedAt = time.Time{}, time.Time{}
			news.Hosts[i].Locked, news.Hosts[i].Reserved = false, false
		}
	}
	return news
}

// All returns the hosts to decide about: those of the survey, and one for every other name that is in use.
func (s *Survey) All() []naming.Host {
	all := slices.Clone(s.Hosts)
	for _, name := range s.Names {
		all = append(all, naming.Host{ID: "named " + name, Name: name})
	}
	return all
}

// TakeSurvey reads a site for the discovery of an owner, which may be "". held are the known nodes with the names that they were
// given. A site without new machines costs one list of its nodes. Otherwise Survey also lists the nodes in enroll and the ports,
// and reads the inventory of each new machine.
func TakeSurvey(ctx context.Context, site *machine.Site, owner string, held map[string]string) (*Survey, error) {
	site.Ironic.Expect(slices.Collect(maps.Keys(held))...)
	all, err := site.Ironic.ListNodeFields(ctx, ironic.NodeFilter{}, surveyFields)
	if err != nil {
		return nil, err
	}
	held, replaced := follow(held, all)
	isNew := func(n *ironic.Node) bool {
		mark := ownRecord(site, n)
		return held[n.UUID] == "" && (mark == nil && n.Name == "" && ironic.State(n.ProvisionState) == nodes.Enroll || mark != nil &&
			mark.Owner == owner)
	}
	facts, err := factsOf(ctx, site, all, isNew)
	if err != nil {
		return nil, err
	}
	s := &Survey{Exists: map[string]bool{}, Replaced: replaced, held: held, fresh: len(facts.inventories) > 0}
	for i := range all {
		node := &all[i]
		s.Exists[node.UUID] = true
		switch name := held[node.UUID]; {
		case name != "":
			if notes.DiscoveryOf(node) == nil {
				s.Unmarked = append(s.Unmarked, node.UUID)
			}
			if isHeldByOwnClaim(node) {
				s.Late = append(s.Late, node.UUID)
			}
			h := hostOf(site, node, facts)
			h.Owner, h.OwnerName = owner, name
			s.Hosts = append(s.Hosts, h)
		case isNew(node) || facts.sharesAddress(node):
			s.Hosts = append(s.Hosts, hostOf(site, node, facts))
		case node.Name != "":
			s.Names = append(s.Names, node.Name)
		}
	}
	slices.Sort(s.Names)
	return s, nil
}

// Owners returns the names of the discoveries that have named nodes of a site, sorted.
func Owners(ctx context.Context, site *machine.Site) ([]string, error) {
	all, err := site.Ironic.ListNodeFields(ctx, ironic.NodeFilter{}, surveyFields)
	owners := map[string]bool{}
	for i := range all {
		if mark := ownRecord(site, &all[i]); mark != nil {
			owners[mark.Owner] = true
		}
	}
	return slices.Sorted(maps.Keys(owners)), err
}

// surveyFields are the fields that discovery needs of every node. Ironic returns the times of creation and change only together
// with all other fields.
var surveyFields = []string{
	"uuid", "name", "provision_state", "instance_uuid", "reservation", "extra", "driver", "last_error",
	"owner", "lessee",
}

// follow returns the held hosts with their present nodes. A host was replaced if its node was deleted and another node was
// enrolled under its name. A node with a discovery record does not count: it was discovered again.
func follow(held map[string]string, all []ironic.Node) (now, replaced map[string]string) {
	exists := ironic.ByUUID(all, func(n *ironic.Node) string { return n.UUID })
	named := ironic.ByUUID(all, func(n *ironic.Node) string { return n.Name })
	now, replaced = maps.Clone(held), map[string]string{}
	for id, name := range held {
		heir := named[name]
		if exists[id] != nil || heir == nil || held[heir.UUID] != "" || notes.DiscoveryOf(heir) != nil {
			continue
		}
		delete(now, id)
		now[heir.UUID], replaced[name] = name, heir.UUID
	}
	return now, replaced
}

// facts are the ports of all nodes, and the inventories and addresses of the new machines. All are empty if there are no new
// machines.
type facts struct {
	ports       map[string][]ironic.Port
	inventories map[string]*ironic.Inventory
	addresses   map[string]bool // MAC addresses
	bmcs        map[string]bool
}

func factsOf(ctx context.Context, site *machine.Site, all []ironic.Node, isNew func(*ironic.Node) bool) (*facts, error) {
	f := &facts{
		ports: map[string][]ironic.Port{}, inventories: map[string]*ironic.Inventory{}, addresses: map[string]bool{},
		bmcs: map[string]bool{},
	}
	for i := range all {
		if !isNew(&all[i]) {
			continue
		}
		inventory, err := site.Ironic.Inventory(ctx, all[i].UUID)
		if err != nil {
			return nil, fmt.Errorf("inventory of node %s: %w", all[i].UUID, err)
		}
		f.inventories[all[i].UUID] = inventory
		for _, address := range inventory.Addresses() {
			f.addresses[address] = true
		}
		if inventory != nil {
			for _, bmc := range inventory.BMCHosts() {
				f.bmcs[bmc] = true
			}
		}
	}
	if len(f.inventories) == 0 {
		return f, nil
	}
	if err := errors.Join(readEnrolled(ctx, site, all), readBMCs(ctx, site, all, f)); err != nil {
		return nil, err
	}
	ports, err := site.Ironic.ListPorts(ctx)
	if err != nil {
		return nil, err
	}
	for _, port := range ports {
		f.ports[port.NodeUUID] = append(f.ports[port.NodeUUID], port)
		if _, isNew := f.inventories[port.NodeUUID]; isNew {
			f.addresses[ironic.MAC(port.Address)] = true
		}
	}
	return f, nil
}

// readBMCs adds their driver_info to all nodes, if a new machine reports the address of its BMC.
func readBMCs(ctx context.Context, site *machine.Site, all []ironic.Node, f *facts) error {
	if len(f.bmcs) == 0 {
		return nil
	}
	listed, err := site.Ironic.ListNodeFields(ctx, ironic.NodeFilter{}, []string{"uuid", "driver_info"})
	if err != nil {
		return err
	}
	known := ironic.ByUUID(listed, func(n *ironic.Node) string { return n.UUID })
	for i := range all {
		if node := known[all[i].UUID]; node != nil {
			all[i].DriverInfo = node.DriverInfo
		}
	}
	return nil
}

// readEnrolled adds the times of creation and change and the driver_info to the nodes in enroll, for which discovery needs them.
func readEnrolled(ctx context.Context, site *machine.Site, all []ironic.Node) error {
	enrolled, err := site.Ironic.ListNodes(ctx, ironic.NodeFilter{ProvisionState: string(nodes.Enroll)})
	if err != nil {
		return err
	}
	known := ironic.ByUUID(enrolled, func(n *ironic.Node) string { return n.UUID })
	for i := range all {
		if node := known[all[i].UUID]; node != nil {
			all[i].CreatedAt, all[i].UpdatedAt, all[i].DriverInfo = node.CreatedAt, node.UpdatedAt, node.DriverInfo
		}
	}
	return nil
}

// sharesAddress reports whether a node has a MAC address or a BMC that a new machine reports.
func (f *facts) sharesAddress(n *ironic.Node) bool {
	return slices.ContainsFunc(driverinfo.BMCHosts(n.DriverInfo), func(host string) bool { return f.bmcs[host] }) ||
		slices.ContainsFunc(f.ports[n.UUID], func(p ironic.Port) bool { return f.addresses[ironic.MAC(p.Address)] })
}

func hostOf(site *machine.Site, node *ironic.Node, f *facts) naming.Host {
	h := naming.Host{
		ID: node.UUID, CreatedAt: node.CreatedAt, ChangedAt: node.UpdatedAt, State: node.ProvisionState, Name: node.Name,
		Driver: node.Driver, LastError: node.LastError,
		Reserved: node.InstanceUUID != "" && !isAbandoned(site, node), Locked: node.Reservation != "",
	}
	if mark := ownRecord(site, node); mark != nil {
		h.Owner, h.OwnerName = mark.Owner, mark.Name
	}
	for _, port := range f.ports[node.UUID] {
		h.PortMACs = append(h.PortMACs, ironic.MAC(port.Address))
		if port.PXEEnabled {
			h.PXEMACs = append(h.PXEMACs, ironic.MAC(port.Address))
		}
	}
	slices.Sort(h.PortMACs)
	slices.Sort(h.PXEMACs)
	for _, host := range driverinfo.BMCHosts(node.DriverInfo) {
		if f.bmcs[host] { // the others do not matter, and may change with the configuration of the host
			h.DriverBMCs = append(h.DriverBMCs, host)
		}
	}
	i := f.inventories[node.UUID]
	h.ByHand = enrolledManually(node, i)
	if i == nil {
		return h
	}
	h.HasInventory = true
	h.Hostname, h.Serial, h.Manufacturer, h.Product = i.Hostname, i.System.Serial, i.System.Manufacturer, i.System.Product
	h.BMCAddress, h.BMCv6Address, h.PXEInterface, h.CPUs, h.MemoryMB = i.BMC(), i.BMCv6, i.Boot.PXEInterface, i.CPU.Count,
		i.Memory.PhysicalMB
	for _, d := range i.Disks {
		if d.Name != "" {
			h.Disks = append(h.Disks, naming.Disk{Name: d.Name, Bytes: d.Size})
		}
	}
	for _, nic := range i.Interfaces {
		h.Interfaces = append(h.Interfaces, naming.Interface{
			Name: nic.Name, MAC: nic.MAC, IPv4: nic.IPv4, IPv6: nic.IPv6, PCIAddress: nic.PCIAddress, HasCarrier: nic.HasCarrier != nil &&
				*nic.HasCarrier,
		})
	}
	return h
}
