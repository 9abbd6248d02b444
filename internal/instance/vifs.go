package instance

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/states"
)

// VIF is a connection of a machine to a network: in OpenStack, a port of Neutron.
type VIF struct {
	ID  string `json:"id"`
	MAC string `json:"mac,omitempty"` // of the node's port; empty: Ironic chooses a free port
}

// Connections are the changes of a machine's connections that come with a deployment.
type Connections struct {
	Wanted   []VIF
	Unwanted []string // IDs of VIFs to detach
}

// KeepsVIFs reports whether the network interface of a node keeps VIFs. noop, the default without Neutron, and ironic-networking, which configures the
// switch ports that the ports of the node name, accept and forget them (reference/ironic.md#vifs).
func KeepsVIFs(n *ironic.Node) bool {
	return n.NetworkInterface != "noop" && n.NetworkInterface != "ironic-networking"
}

// Connect detaches VIFs from the machine, and then attaches those that are wanted and not attached yet.
func Connect(ctx context.Context, m *machine.Machine, c Connections) error {
	return ConnectAgain(ctx, m, c, nil)
}

// Disconnect detaches VIFs of a machine on which nothing was deployed, and that an instance has reserved. Ironic detaches those of a machine that it
// undeploys.
func Disconnect(ctx context.Context, m *machine.Machine, instance string, vifs []VIF) error {
	if node := m.Node(); states.IsOccupied(node) || states.IsInProgress(node) || node.InstanceUUID != instance {
		return nil
	}
	var c Connections
	for _, vif := range vifs {
		c.Unwanted = append(c.Unwanted, vif.ID)
	}
	return Connect(ctx, m, c)
}

// ConnectAgain is Connect, which also attaches the VIFs that an undeploy has detached. One of those that Ironic refuses, for example because
// it does not exist any more, is left out: this provider has not chosen it.
func ConnectAgain(ctx context.Context, m *machine.Machine, c Connections, lost []VIF) error {
	if len(c.Wanted)+len(lost) == 0 && (len(c.Unwanted) == 0 || !KeepsVIFs(m.Node())) {
		return nil
	}
	attached, err := m.Site().Ironic.VIFs(ctx, m.Node().UUID)
	if err != nil {
		return err
	}
	for _, id := range c.Unwanted {
		if !slices.Contains(attached, id) {
			continue
		}
		if err := m.Unlocked(ctx, func() error { return m.Site().Ironic.DetachVIF(ctx, m.Node().UUID, id) }); err != nil {
			return fmt.Errorf("detach VIF %s: %w", id, err)
		}
		attached = slices.DeleteFunc(attached, func(other string) bool { return other == id })
	}
	for _, vif := range c.Wanted {
		if slices.Contains(attached, vif.ID) {
			continue
		}
		if err := attachVIF(ctx, m, vif); err != nil {
			return fmt.Errorf("attach VIF %s: %w", vif.ID, err)
		}
		attached = append(attached, vif.ID)
	}
	for _, vif := range lost {
		if slices.Contains(attached, vif.ID) || slices.Contains(c.Unwanted, vif.ID) {
			continue
		}
		err := attachVIF(ctx, m, vif)
		var refused *api.StatusError
		if errors.As(err, &refused) && slices.Contains([]int{http.StatusBadRequest, http.StatusNotFound, http.StatusConflict}, refused.Status) {
			m.Site().Ironic.Logger().WarnContext(ctx, "could not attach a VIF again that was attached before the undeploy", append(machine.NodeAttributes(m.Node()), "vif", vif.ID, "error", err)...)
			continue
		}
		if err != nil {
			return fmt.Errorf("attach VIF %s again: %w", vif.ID, err)
		}
	}
	return nil
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
			if id, _ := port.InternalInfo[tenantVIF].(string); id != "" {
				at[id] = mac
			}
		}
	}
	for _, id := range ids {
		vifs = append(vifs, VIF{ID: id, MAC: at[id]})
	}
	return vifs, nil
}

// tenantVIF is the key of a port's internal_info that names its VIF.
const tenantVIF = "tenant_vif_port_id"

func attachVIF(ctx context.Context, m *machine.Machine, vif VIF) error {
	port := ""
	if vif.MAC != "" {
		ports, err := m.Site().Ironic.Ports(ctx, m.Node().UUID)
		if err != nil {
			return err
		}
		at, exists := ports[vif.MAC]
		if !exists {
			return fmt.Errorf("node %s has no port %s. Add it to ports of its metal_host, or remove port to let Ironic choose one", ironic.NodeLabel(m.Node()), vif.MAC)
		}
		port = at.UUID
	}
	return m.Unlocked(ctx, func() error { return m.Site().Ironic.AttachVIF(ctx, m.Node().UUID, vif.ID, port) })
}
