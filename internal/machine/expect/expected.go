// Package expect has what the plans of a run expect of the site: the hosts that they create or change, values that no node has, drivers
// that no conductor serves, and rights that the user lacks. An apply decides nothing by it.
package expect

import (
	"cmp"
	"context"
	"sync"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/decide"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/disks"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/states"
)

// ExpectedHost is a host that a plan creates or changes. An empty field is not known yet.
type ExpectedHost struct {
	ID, Name, Class string
	Target          string // its target_state
	Network, Boot   string // its network and boot interfaces
	Deploy, Rescue  string // its deploy and rescue interfaces
	NeverOff        *bool  // disable_power_off
	Maintenance     *bool
	BootPort        bool                       // it may get a port from which it can boot
	Disturbs        bool                       // its apply restarts, cleans or configures the machine
	KeepsDisks      bool                       // it keeps disks that the node does not keep yet
	Disks           decide.Value[[]disks.Hint] // skip_block_devices
	Freed           bool                       // its machine was replaced, so what the node says runs on it ends
	Ports           bool                       // its ports or port groups change, or an inspection may change them
}

// Expected is what the resources of a run tell each other while they are planned. Terraform plans a resource after those that it
// depends on, and in any order otherwise.
type Expected struct {
	mu       sync.Mutex
	hosts    []ExpectedHost
	replaces bool              // a new host may replace one whose node is in use
	ends     map[string]bool   // the nodes that this plan deletes with their hosts
	undeploy map[string]bool   // the nodes that this plan undeploys
	names    map[string]string // that this plan gives to discovered nodes, with their UUIDs
}

// ExpectedOf returns what the resources of a run tell each other about a site while they are planned.
func ExpectedOf(site *machine.Site) *Expected {
	return machine.Kept(site, func(*machine.Site) *Expected {
		return &Expected{names: map[string]string{}, ends: map[string]bool{}, undeploy: map[string]bool{}}
	})
}

// ExpectName records that this plan gives a name to a discovered node, so that the host of that name, which is planned afterwards, knows
// that it takes the node over.
func ExpectName(site *machine.Site, name, node string) {
	planned := ExpectedOf(site)
	planned.mu.Lock()
	defer planned.mu.Unlock()
	planned.names[name] = node
}

// Node returns the UUID of the discovered node to which this plan gives a name; "" if none.
func (e *Expected) Node(name string) string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.names[name]
}

// ExpectHost records that this plan creates or changes a host, so that an allocation which depends on it does not warn that the
// host is missing or does not match yet.
func ExpectHost(site *machine.Site, h ExpectedHost) {
	planned := ExpectedOf(site)
	planned.mu.Lock()
	defer planned.mu.Unlock()
	planned.hosts = append(planned.hosts, h)
}

// Undeploy records that this plan undeploys a node.
func Undeploy(site *machine.Site, node string) {
	planned := ExpectedOf(site)
	planned.mu.Lock()
	defer planned.mu.Unlock()
	planned.undeploy[node] = true
}

// Undeploys reports whether this plan undeploys a node, if Terraform has planned that before.
func Undeploys(site *machine.Site, node string) bool {
	planned := ExpectedOf(site)
	planned.mu.Lock()
	defer planned.mu.Unlock()
	return planned.undeploy[node]
}

// EndHost records that this plan destroys a host and deletes its node, so that a group or a deployment which keeps the node refuses the
// plan.
func EndHost(site *machine.Site, node string) {
	planned := ExpectedOf(site)
	planned.mu.Lock()
	defer planned.mu.Unlock()
	planned.ends[node] = true
}

// EndsHost reports whether this plan deletes a node with its host, if Terraform has planned that before.
func EndsHost(site *machine.Site, node string) bool {
	planned := ExpectedOf(site)
	planned.mu.Lock()
	defer planned.mu.Unlock()
	return planned.ends[node]
}

// EndsHosts reports whether this plan deletes any node with its host, or may replace a host in use, if Terraform has planned that before.
func EndsHosts(site *machine.Site) bool {
	planned := ExpectedOf(site)
	planned.mu.Lock()
	defer planned.mu.Unlock()
	return len(planned.ends) > 0 || planned.replaces
}

// ReplaceUsed records that this plan may replace a host whose node is in use.
func ReplaceUsed(site *machine.Site) {
	planned := ExpectedOf(site)
	planned.mu.Lock()
	defer planned.mu.Unlock()
	planned.replaces = true
}

// Host reports whether this plan creates or changes a host that may be the one with a name or UUID.
func (e *Expected) Host(ref string) bool {
	return e.any(func(h ExpectedHost) bool { return h.Name == "" || h.Name == ref || h.ID == ref })
}

// HostsOf returns the hosts that this plan creates or changes and that may be the one with a name or UUID. An empty one is not known yet:
// it may be any new host.
func HostsOf(site *machine.Site, ref string) (may []ExpectedHost) {
	planned := ExpectedOf(site)
	planned.mu.Lock()
	defer planned.mu.Unlock()
	for _, h := range planned.hosts {
		if ref == "" && h.ID == "" || ref != "" && (h.ID == ref || h.Name == ref) {
			may = append(may, h)
		}
	}
	return may
}

// find returns the host of a node, if this plan changes it.
func (e *Expected) find(node *ironic.Node) (host ExpectedHost, planned bool) {
	planned = e.any(func(h ExpectedHost) bool {
		host = h
		return h.ID == node.UUID
	})
	return host, planned
}

// ReplacesHost reports whether this plan creates a host under the name of a node whose host it does not change. Names are unique, so
// Terraform then deletes the node first.
func ReplacesHost(site *machine.Site, node *ironic.Node) bool {
	planned := ExpectedOf(site)
	_, changes := planned.find(node)
	return !changes && node.Name != "" && planned.any(func(h ExpectedHost) bool { return h.ID == "" && h.Name == node.Name })
}

// PlannedName returns the name that this plan gives to a node; "" if it changes no host of the node, or has not planned that yet.
func PlannedName(site *machine.Site, node *ironic.Node) string {
	if host, planned := ExpectedOf(site).find(node); planned {
		return host.Name
	}
	return ""
}

// Freed reports whether this plan undeploys a node because its machine was replaced, if Terraform has planned its host before.
func Freed(site *machine.Site, node *ironic.Node) bool {
	host, planned := ExpectedOf(site).find(node)
	return planned && host.Freed
}

// KeepsDisks reports whether this plan lets a node keep more disks, if Terraform has planned its host before.
func KeepsDisks(site *machine.Site, node *ironic.Node) bool {
	host, planned := ExpectedOf(site).find(node)
	return planned && host.KeepsDisks
}

// KeptDisks returns the hints of the disks that a node keeps when this plan is applied, if Terraform has planned its host before.
func KeptDisks(site *machine.Site, node *ironic.Node) []disks.Hint {
	if host, planned := ExpectedOf(site).find(node); planned && host.Disks.Set {
		return host.Disks.V
	}
	return disks.HintsOf(node.Properties)
}

// PortsChange reports whether this plan changes the ports of a node, if Terraform has planned its host before.
func PortsChange(site *machine.Site, node *ironic.Node) bool {
	host, planned := ExpectedOf(site).find(node)
	return planned && host.Ports
}

// AsPlanned returns a node as this plan leaves it: if the plan changes its host, and Terraform has planned that before, with the state, the
// maintenance and the interfaces that the host gets. A warning about a node asks this, so that it is not about what the same plan mends.
func AsPlanned(site *machine.Site, node *ironic.Node) *ironic.Node {
	h, planned := ExpectedOf(site).find(node)
	if !planned {
		return node
	}
	after := *node
	if !states.Deployed(node) {
		after.ProvisionState = cmp.Or(h.Target, node.ProvisionState)
	}
	if h.Maintenance != nil {
		after.Maintenance = *h.Maintenance
	}
	after.NetworkInterface, after.BootInterface = cmp.Or(h.Network, node.NetworkInterface), cmp.Or(h.Boot, node.BootInterface)
	after.RescueInterface = cmp.Or(h.Rescue, node.RescueInterface)
	if h.Deploy != "" && h.Deploy != node.DeployInterface {
		after.DeployInterface, after.ActingDeploy = h.Deploy, h.Deploy
	}
	return &after
}

// Class reports whether this plan creates or changes a host that may have a resource class.
func (e *Expected) Class(class string) bool {
	return e.any(func(h ExpectedHost) bool { return h.Class == "" || h.Class == class })
}

func (e *Expected) any(fits func(ExpectedHost) bool) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, h := range e.hosts {
		if fits(h) {
			return true
		}
	}
	return false
}

// CheckOff returns an error if Ironic will never switch a machine off when the present plan is applied; ref is the name or UUID of the
// node. If this plan changes the host of the node, and Terraform has planned that before, its planned disable_power_off counts. An
// unknown node or value is no reason.
func CheckOff(ctx context.Context, site *machine.Site, ref string) error {
	node, err := site.Ironic.NodeForRefresh(ctx, ref)
	if err != nil {
		return nil //nolint:nilerr // the apply reports it
	}
	if h, planned := ExpectedOf(site).find(node); planned {
		if h.NeverOff == nil || !*h.NeverOff {
			return nil
		}
		return machine.NeverOff(node)
	}
	if node.DisablePowerOff {
		return machine.NeverOff(node)
	}
	return nil
}
