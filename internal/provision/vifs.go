package provision

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
)

// VIF is a connection of a machine to a network: in OpenStack, a port of Neutron.
type VIF struct {
	ID  string
	MAC string // of the node's port; empty: Ironic chooses a free port
}

// KeepsVIFs reports whether the network interface of a node keeps VIFs. noop, the default without Neutron, accepts and forgets them
// (reference/ironic.md#vifs).
func KeepsVIFs(n *ironic.Node) bool { return n.NetworkInterface != "noop" }

// ConnectVIFs detaches VIFs from the machine, and then attaches those that are wanted and not attached yet.
func (m *Machine) ConnectVIFs(ctx context.Context, wanted []VIF, unwanted []string) error {
	if len(wanted) == 0 && (len(unwanted) == 0 || !KeepsVIFs(m.node)) {
		return nil
	}
	attached, err := m.site.VIFs(ctx, m.node.UUID)
	if err != nil {
		return err
	}
	for _, id := range unwanted {
		if !slices.Contains(attached, id) {
			continue
		}
		if err := m.unlocked(ctx, func() error { return m.site.DetachVIF(ctx, m.node.UUID, id) }); err != nil {
			return fmt.Errorf("detach VIF %s: %w", id, err)
		}
		attached = slices.DeleteFunc(attached, func(other string) bool { return other == id })
	}
	for _, vif := range wanted {
		if slices.Contains(attached, vif.ID) {
			continue
		}
		if err := m.attachVIF(ctx, vif); err != nil {
			return fmt.Errorf("attach VIF %s: %w", vif.ID, err)
		}
	}
	return nil
}

func (m *Machine) attachVIF(ctx context.Context, vif VIF) error {
	port := ""
	if vif.MAC != "" {
		ports, err := m.site.Ports(ctx, m.node.UUID)
		if err != nil {
			return err
		}
		at, exists := ports[vif.MAC]
		if !exists {
			return fmt.Errorf("node %s has no port %s. Add it to ports of its metal_host, or remove port to let Ironic choose one", ironic.NodeLabel(m.node), vif.MAC)
		}
		port = at.UUID
	}
	return m.unlocked(ctx, func() error { return m.site.AttachVIF(ctx, m.node.UUID, vif.ID, port) })
}

// unlocked sends a request that changes the node. If a conductor has locked the node, it waits for that and sends the request again.
func (m *Machine) unlocked(ctx context.Context, send func() error) error {
	err := send()
	if ironic.IsStatus(err, http.StatusConflict, "is locked by host") && m.outlastLock(ctx) {
		err = send()
	}
	return err
}
