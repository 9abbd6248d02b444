package host

import (
	"context"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/framework"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/provision"
)

// noPortSummary is the same for all hosts, so that Terraform folds their warnings into one.
const noPortSummary = "Network boot needs a port"

// warnNoPort warns of a host whose ramdisk boots from the network, and that has no port for it. state is nil for a new host. It is called if
// the ramdisk boots; inspects says that an inspection comes first.
func (h *host) warnNoPort(ctx context.Context, plan, config, state *model, inspects bool, diags *diag.Diagnostics) {
	if !h.Known() || plan.byAgent() || plan.hasBootPort(ctx) {
		return
	}
	id := plan.ID.ValueString()
	if state == nil {
		id = ""
		if over := h.takesOver(ctx, config); over != nil {
			id = over.Node.UUID
		}
	}
	boot := provision.NetworkBoot{Interface: h.effective(ctx, "boot", id, plan, config, state)}
	if !provision.BootsFromPort(boot.Interface) {
		return
	}
	boot.Open = inspects && provision.InspectionBringsPorts(plan.Driver.ValueString(), h.effective(ctx, "inspect", id, plan, config, state))
	var err error
	if boot.Ports, err = h.portsAfter(ctx, id, plan, state); err != nil {
		return // the apply reports it
	}
	lacks := boot.Lacks()
	if lacks == "" {
		return
	}
	diags.AddAttributeWarning(path.Root("ports"), noPortSummary, fmt.Sprintf("Host %s boots Ironic's ramdisk from the network (boot interface %s), and %s. Ironic then waits for a ramdisk that never reports, "+
		"30 minutes by default. Name the network card that boots: ports = { \"<MAC address>\" = { pxe_enabled = true } }. "+
		"Ignore this only if the site boots unknown machines into the ramdisk.", plan.describe(), boot.Interface, lacks))
}

// effective returns the interface of a kind that the node has after the apply; "" if that is not known. id is the node that exists; "" if
// none does.
func (h *host) effective(ctx context.Context, kind, id string, plan, config, state *model) string {
	if !framework.FullyKnown(ctx, config.Interfaces, plan.Driver) || config.Interfaces.IsNull() && !framework.FullyKnown(ctx, config.BMC) {
		return ""
	}
	if name := config.plannedInterface(ctx, kind); name != "" {
		return name
	}
	if id != "" && (state == nil || state.plannedInterface(ctx, kind) == "") {
		if node, err := h.Client.NodeForRefresh(ctx, id); err == nil && node.Driver == plan.Driver.ValueString() {
			return map[string]string{"boot": node.BootInterface, "inspect": node.InspectInterface}[kind]
		}
	}
	driver := h.Client.DefaultsOf(ctx, plan.Driver.ValueString())
	return map[string]string{"boot": driver.Boot, "inspect": driver.Inspect}[kind]
}

// portsAfter returns pxe_enabled of the ports that the node has after the apply: those of Ironic that the plan does not remove, and the
// planned ones.
func (h *host) portsAfter(ctx context.Context, id string, plan, state *model) (map[string]*bool, error) {
	after := map[string]*bool{}
	if id != "" {
		ports, err := h.Client.PortsForRefresh(ctx, id)
		if err != nil {
			return nil, err
		}
		after = provision.PXEPorts(ports)
	}
	if state != nil {
		for mac := range state.ports(ctx) {
			delete(after, mac)
		}
	}
	for mac, port := range plan.ports(ctx) {
		after[mac] = nil
		if framework.IsSet(port.PXEEnabled) {
			after[mac] = port.PXEEnabled.ValueBoolPointer()
		}
	}
	return after, nil
}

// hasBootPort reports whether a planned port may boot the machine.
func (m *model) hasBootPort(ctx context.Context) bool {
	for _, port := range m.ports(ctx) {
		if !framework.IsFalse(port.PXEEnabled) {
			return true
		}
	}
	return m.Ports.IsUnknown()
}
