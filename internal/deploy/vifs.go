package deploy

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/failure"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/notes"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/states"
)

// VIF is a connection of a machine to a network: in OpenStack, a port of Neutron.
type VIF struct {
	ID  string `json:"id"`
	MAC string `json:"mac,omitempty"` // of the node's port; empty: Ironic chooses a free port
}

// VIFConnections are the changes of a machine's connections that come with a deployment.
type VIFConnections struct {
	Wanted   []VIF
	Unwanted []string // IDs of VIFs to detach
}

// KeepsVIFs reports whether the network interface of a node keeps VIFs. noop, the default without Neutron, and ironic-networking, which
// configures the switch ports that the ports of the node name, accept and forget them (reference/ironic.md#vifs).
func KeepsVIFs(n *ironic.Node) bool {
	return n.NetworkInterface != "noop" && n.NetworkInterface != "ironic-networking"
}

// ConnectVIFs detaches VIFs from the machine, and then attaches those that are wanted and not attached yet.
func ConnectVIFs(ctx context.Context, m *machine.Machine, c VIFConnections) error {
	return reconnectVIFs(ctx, m, c, nil)
}

// DisconnectVIFs detaches VIFs of a machine on which nothing was deployed, and that an instance has reserved. Ironic detaches those of a
// machine that it undeploys.
func DisconnectVIFs(ctx context.Context, m *machine.Machine, instance string, vifs []VIF) error {
	if node := m.Node(); states.IsOccupied(node) || states.IsInProgress(node) || node.InstanceUUID != instance {
		return nil
	}
	var c VIFConnections
	for _, vif := range vifs {
		c.Unwanted = append(c.Unwanted, vif.ID)
	}
	return ConnectVIFs(ctx, m, c)
}

// reconnectVIFs is ConnectVIFs, which also attaches the VIFs that an undeploy has detached. One of those that Ironic refuses, for example
// because Neutron has deleted it, is left out: this provider has not chosen it. So is one that Neutron has deleted, and that failed the
// last deployment.
func reconnectVIFs(ctx context.Context, m *machine.Machine, c VIFConnections, lost []VIF) error {
	none := len(c.Unwanted) == 0 && machine.DeletedVIF(m.Node()) == ""
	if len(c.Wanted)+len(lost) == 0 && (none || !KeepsVIFs(m.Node())) {
		return nil
	}
	attached, err := m.Site().Ironic.VIFs(ctx, m.Node().UUID)
	if err != nil {
		return err
	}
	ports, err := portsFor(ctx, m, slices.Concat(c.Wanted, lost))
	if err != nil {
		return err
	}
	leave, err := c.leaving(m.Node(), ports, attached)
	if err != nil {
		return err
	}
	for _, id := range leave {
		if err := m.Unlocked(ctx, func() error { return m.Site().Ironic.DetachVIF(ctx, m.Node().UUID, id) }); err != nil {
			return fmt.Errorf("detach VIF %s: %w", id, err)
		}
		attached = slices.DeleteFunc(attached, func(other string) bool { return other == id })
	}
	if err := noteVIFs(ctx, m, idsOf(c.Wanted), attached); err != nil {
		return err
	}
	for _, vif := range c.Wanted {
		if slices.Contains(attached, vif.ID) {
			continue
		}
		if err := attachVIF(ctx, m, vif, ports, attachTries); err != nil {
			return fmt.Errorf("attach VIF %s: %w", vif.ID, err)
		}
		attached = append(attached, vif.ID)
	}
	for _, vif := range lost {
		if slices.Contains(attached, vif.ID) || slices.Contains(c.Unwanted, vif.ID) {
			continue
		}
		if err := attachLost(ctx, m, vif, ports); err != nil {
			return err
		}
	}
	return nil
}

// idsOf returns the IDs of VIFs.
func idsOf(vifs []VIF) (ids []string) {
	for _, vif := range vifs {
		ids = append(ids, vif.ID)
	}
	return ids
}

// noteVIFs notes VIFs on the node before they are attached: a run that is killed then leaves no VIF of which nobody knows whose it is. A
// user without the right to that attaches them all the same.
func noteVIFs(ctx context.Context, m *machine.Machine, wanted, attached []string) error {
	mark := InstanceMarkerOf(m.Node())
	fresh := slices.DeleteFunc(wanted, func(id string) bool { return slices.Contains(attached, id) || slices.Contains(mark.VIFs, id) })
	if len(fresh) == 0 {
		return nil
	}
	mark.VIFs = append(mark.VIFs, fresh...)
	if err := m.Patch(ctx, ironic.Patch{}.With("/instance_info/"+notes.KeyMarker, mark)); !api.IsForbidden(err) {
		return err
	}
	return nil
}

// OwnVIFs returns the attached VIFs of a node that a run of this provider has attached.
func OwnVIFs(n *ironic.Node, attached []string) []string {
	ours := InstanceMarkerOf(n).VIFs
	return slices.DeleteFunc(slices.Clone(attached), func(id string) bool { return !slices.Contains(ours, id) })
}

// leaving returns the attached VIFs that are detached: the unwanted ones, one that Neutron has deleted, and those that are at another port
// than the one that they name. It refuses a port that Ironic never uses before anything is detached: the machine may be running.
func (c VIFConnections) leaving(node *ironic.Node, ports map[string]ironic.Port, attached []string) (ids []string, err error) {
	ids = append(slices.Clone(c.Unwanted), machine.DeletedVIF(node))
	for _, vif := range c.Wanted {
		leaves := slices.Contains(ids, vif.ID)
		if IsElsewhere(ports, vif) && !leaves {
			ids, leaves = append(ids, vif.ID), true
		}
		if why := refusesPort(node, ports, vif); why != "" && (leaves || !slices.Contains(attached, vif.ID)) {
			return nil, fmt.Errorf("attach VIF %s: %s", vif.ID, why)
		}
	}
	return slices.DeleteFunc(ids, func(id string) bool { return !slices.Contains(attached, id) }), nil
}

// attachLost attaches a VIF that an undeploy has detached, unless Ironic refuses it.
func attachLost(ctx context.Context, m *machine.Machine, vif VIF, ports map[string]ironic.Port) error {
	var err error
	if why := refusesPort(m.Node(), ports, vif); why != "" {
		err = errors.New(why)
	} else if err = attachVIF(ctx, m, vif, ports, attachTries); err == nil {
		return nil
	} else if !refusesVIF(err) {
		return fmt.Errorf("attach VIF %s again: %w", vif.ID, err)
	}
	m.Site().Ironic.Logger().WarnContext(ctx, "could not attach a VIF again that was attached before the undeploy",
		append(machine.NodeAttributes(m.Node()), "vif", vif.ID, "error", err)...)
	return nil
}

// portsFor returns the ports of the machine if one of some VIFs names its port; otherwise nil.
func portsFor(ctx context.Context, m *machine.Machine, vifs []VIF) (map[string]ironic.Port, error) {
	if !slices.ContainsFunc(vifs, func(vif VIF) bool { return vif.MAC != "" }) {
		return nil, nil //nolint:nilnil // Ironic chooses all ports
	}
	return m.Site().Ironic.Ports(ctx, m.Node().UUID)
}

// attachedVIFs returns the VIFs of the machine, each with the MAC address of its port if a VIF can name its port.
func attachedVIFs(ctx context.Context, m *machine.Machine) (vifs []VIF, err error) {
	version, err := m.Site().Ironic.Microversion(ctx)
	if err != nil || version < api.VersionVIFs || !KeepsVIFs(m.Node()) {
		return nil, err
	}
	ids, err := m.Site().Ironic.VIFs(ctx, m.Node().UUID)
	if err != nil || len(ids) == 0 {
		return nil, err
	}
	at := map[string]string{}
	if version >= api.VersionVIFPort {
		ports, err := m.Site().Ironic.Ports(ctx, m.Node().UUID)
		if err != nil {
			return nil, err
		}
		for mac, port := range ports {
			if id := port.VIF(); id != "" {
				at[id] = mac
			}
		}
	}
	for _, id := range ids {
		vifs = append(vifs, VIF{ID: id, MAC: at[id]})
	}
	return vifs, nil
}

// attachTries is how often a VIF is attached whose port Neutron does not change: its answer passes if the port that has the MAC address is
// about to be deleted, or if Neutron was too busy.
const attachTries = 4

// attachVIF attaches a VIF to a port of the machine. A failure leaves it detached: Ironic 39 attaches a VIF before it connects the switch,
// and keeps it attached when that fails (reference/ironic.md#vifs).
func attachVIF(ctx context.Context, m *machine.Machine, vif VIF, ports map[string]ironic.Port, tries int) error {
	site, node := m.Site().Ironic, m.Node()
	err := m.Unlocked(ctx, func() error { return site.AttachVIF(ctx, node.UUID, vif.ID, ports[vif.MAC].UUID) })
	if err == nil || !api.IsStatus(err, http.StatusInternalServerError, "") {
		return explainVIF(node, vif, err)
	}
	if strings.Contains(err.Error(), macNotChanged) {
		if tries == 1 || ctx.Err() != nil {
			return explainVIF(node, vif, err)
		}
		site.Logger().InfoContext(ctx, "Neutron does not change the port of a VIF; the provider tries again",
			append(machine.NodeAttributes(node), "vif", vif.ID, "error", err)...)
		select {
		case <-ctx.Done():
		case <-time.After(site.PollInterval()):
		}
		return attachVIF(ctx, m, vif, ports, tries-1)
	}
	if attached, rerr := site.VIFs(ctx, node.UUID); rerr == nil && slices.Contains(attached, vif.ID) {
		if derr := m.Unlocked(ctx, func() error { return site.DetachVIF(ctx, node.UUID, vif.ID) }); derr != nil {
			err = errors.Join(err, fmt.Errorf("detach it: %w", derr))
		}
	}
	return explainVIF(node, vif, err)
}

// How Ironic says that a VIF cannot be attached (reference/ironic.md#vifs).
const (
	macNotChanged = "can not update Neutron port"
	noFreePort    = "not enough free physical ports"
	noSuchPort    = "was not found"
	notConnected  = "failed to reach status ACTIVE"
)

// refusesVIF reports whether Ironic refuses to attach a VIF whatever happens to the machine. 21.4 answers 500 for one that Neutron has
// deleted.
func refusesVIF(err error) bool {
	var refused *api.StatusError
	return errors.As(err, &refused) && (slices.Contains([]int{http.StatusBadRequest, http.StatusNotFound, http.StatusConflict},
		refused.Status) || strings.Contains(refused.Message, macNotChanged))
}

func explainVIF(node *ironic.Node, vif VIF, err error) error {
	var refused *api.StatusError
	if !errors.As(err, &refused) {
		return err
	}
	for text, advice := range map[string]string{
		macNotChanged: fmt.Sprintf("Either Neutron has no port %s: correct its ID in vifs, or remove it. Or another port of its network "+
			"has the MAC address of the machine's port: a port that was detached while nothing ran on the machine keeps that address. "+
			"openstack port list --mac-address finds it; delete it, or attach it again and undeploy the machine, which frees the "+
			"address. Then apply again.", vif.ID),
		noFreePort: fmt.Sprintf("Each port of the node carries one VIF, and a port in a port group none: the group does. A port with "+
			"another physical_network than the VIF's network does not count, nor, with the network interface neutron, one without "+
			"local_link_connection. The network interface of the node is %s. Correct ports of the metal_host, or remove a VIF.",
			node.NetworkInterface),
		noSuchPort: "Neutron has no such port, or has deleted it. Correct its ID in vifs, or remove it.",
		notConnected: "Neutron's driver of the switch has not connected the port. Compare local_link_connection of the port with the " +
			"switch, and see the log of neutron-server. Then apply again. The provider has detached the VIF.",
	} {
		if strings.Contains(refused.Message, text) {
			return &failure.Error{Node: node, Fact: err.Error(), Advice: advice, Err: err}
		}
	}
	return err
}
