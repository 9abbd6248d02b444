package deploy

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/decide"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/deploy/deployinterface"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/networkdata"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/expect"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/failure"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/ramdisk"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/states"
)

// ref returns the node that the plan is about; "" if that is not known.
func (l *Look) ref() string {
	if l.fresh() {
		return cmp.Or(l.Wish.Node.V, l.Seen.ID)
	}
	return cmp.Or(l.Seen.ID, l.Wish.Node.V)
}

// Power refuses a plan that has to switch off a machine which Ironic never switches off.
func (l *Look) Power(ctx context.Context) {
	ref := l.Wish.Node.V
	if !l.fresh() {
		ref = l.Seen.ID
	}
	off := decide.Known(PowerOff)
	if l.Site == nil || l.Wish.Power != off || ref == "" {
		return
	}
	if !l.fresh() && l.Seen.Power == off && !l.Plan.Operates() {
		return // it is off, and stays off
	}
	if err := expect.CheckOff(ctx, l.Site, ref); err != nil {
		_, detail := failure.Explain("", err)
		l.refuse(decide.At("power_state"), "Power-off is disabled", detail)
	}
}

// Agent refuses a plan for a machine without BMC credentials that needs them: it rebuilds, restarts, replaces or undeploys
// the machine, now or when the resource is destroyed.
func (l *Look) Agent(ctx context.Context) {
	ref := l.ref()
	if l.Site == nil || ref == "" {
		return
	}
	node, err := l.Site.Ironic.NodeForRefresh(ctx, ref)
	if err != nil || !machine.ByAgent(node) {
		return
	}
	if at, why := l.agentLacks(); at != "" {
		l.refuse(decide.At(at), "Machine without BMC credentials", fmt.Sprintf("Node %s: %s. %s", ironic.NodeLabel(node), why, agentAdvice))
	}
}

// agentAdvice says how a node gets what Ironic lacks.
const agentAdvice = "Ironic has no BMC credentials of the machine (power_control = \"agent\" on its metal_host). First give the " +
	"metal_host a bmc with address, username and password_wo in place of power_control, and apply that."

// agentLacks returns what a plan needs that Ironic cannot do without BMC credentials: the attribute, and why; "" if there is nothing.
func (l *Look) agentLacks() (at, why string) {
	w, forgets := l.Wish, l.Seen.Was.forgets()
	switch {
	case w.Destroy && !forgets:
		return "on_destroy", "it cannot be undeployed"
	case w.Destroy:
		return "", ""
	case l.fresh() && !l.Seen.New && !forgets:
		return "on_destroy", "it cannot be undeployed, which the replacement needs"
	case !l.fresh() && l.Plan.Operates() && states.Finished(l.Seen.State):
		return "image", "it cannot be rebuilt or restarted"
	case !l.fresh() && l.Plan.Forecast.Restarts != decide.Known(l.Seen.Restarts):
		return "restart_triggers", "it cannot be restarted"
	case w.OnDestroy.V != DestroyForgets && !w.OnDestroy.Unknown:
		return "on_destroy", "it could not be undeployed. Set on_destroy = \"forget\" to deploy it without credentials"
	case w.Quarantines:
		return "on_failure", "it could not be undeployed after a failure. Remove on_failure"
	case !w.LiveISO.IsNull():
		return "live_iso", "it cannot be booted from an ISO"
	case w.Power.Set:
		return "power_state", "it cannot be switched"
	}
	return "", ""
}

// Obstacles warns of what the node or the image lacks, so that the apply fails or is in vain unless that changes first.
func (l *Look) Obstacles(ctx context.Context) {
	l.maintenance(ctx)
	l.configDrive(ctx)
	l.vifs(ctx)
	l.networkData(ctx)
	l.rescue(ctx)
	l.deploySteps(ctx)
	l.format(ctx)
	l.netboot(ctx)
	l.deployInterface(ctx)
}

// writes reports whether the plan deploys or boots the machine.
func (l *Look) writes() bool { return l.fresh() || l.Plan.Operates() }

// maintenance warns if Ironic refuses to deploy the machine, because its node is or will be in maintenance
// (reference/ironic.md#maintenance-and-deployments). For a replacement, replacement does that.
func (l *Look) maintenance(ctx context.Context) {
	replaces := !l.Seen.New && l.fresh()
	if replaces || l.Seen.New && !l.Wish.Node.Set || !Has(l.Plan.Steps, DoDeploy, DoRepeat, DoRebuild) {
		return
	}
	find := l.Node
	if !l.Seen.New {
		find = func(ctx context.Context) (*ironic.Node, error) { return l.Site.Ironic.NodeForRefresh(ctx, l.Seen.ID) }
	}
	node, err := find(ctx)
	if err != nil || !expect.AsPlanned(l.Site, node).Maintenance {
		return // the apply reports what is wrong with the node
	}
	is := "is in maintenance" + afterColon(node.MaintenanceReason)
	if !node.Maintenance {
		is = "is put into maintenance by this plan."
	}
	l.warn(decide.At("node_id"), "Maintenance prevents the deployment", fmt.Sprintf("Node %s %s Ironic deploys no machine in maintenance. "+
		"Unless the maintenance ends first, the apply will fail for this deployment.", ironic.NodeLabel(node), is))
}

// configDrive warns if the node's boot interface cannot pass a config drive with a live ISO.
func (l *Look) configDrive(ctx context.Context) {
	if l.Wish.LiveISO.IsNull() || l.Wish.Content[attrConfigDrive].IsNull() || !l.Wish.Node.Set {
		return
	}
	ref := l.Wish.Node.V
	if !l.fresh() {
		ref = l.Seen.ID
	}
	node, err := l.Site.Ironic.NodeForRefresh(ctx, ref)
	if err != nil || carriesConfigDrive(expect.AsPlanned(l.Site, node)) {
		return // the apply reports what is wrong with the node
	}
	_, detail := failure.Explain("", NoConfigDrive(node))
	l.warn(decide.At("config_drive"), "Node cannot use the config drive", "Unless the node changes first, the apply will fail: "+detail)
}

// vifs warns if the node's network interface keeps no VIFs, or if the node's ports cannot take them.
func (l *Look) vifs(ctx context.Context) {
	if len(l.Wish.Ports) == 0 || !l.Wish.Node.Set || !l.Seen.New && l.Wish.VIFs == l.Seen.Was.VIFs {
		return
	}
	node, err := l.Node(ctx)
	if err != nil {
		return // the apply reports what is wrong with the node
	}
	planned := expect.AsPlanned(l.Site, node)
	if !KeepsVIFs(planned) {
		l.warn(decide.At("vifs"), "VIFs have no effect",
			fmt.Sprintf("The network interface of node %s is %s, which accepts VIFs and connects nothing. Give its metal_host "+
				"hardware_interfaces = { network = \"neutron\" }, or remove vifs.", ironic.NodeLabel(node), planned.NetworkInterface))
		return
	}
	ports, err := l.Site.Ironic.PortsForRefresh(ctx, node.UUID)
	if err != nil || expect.PortsChange(l.Site, node) || l.Wish.VIFs.Unknown && !l.Seen.New {
		return
	}
	if why := Unattachable(planned, ports, l.Wish.Ports, l.leavingVIFs(node, ports)); why != "" {
		l.warn(decide.At("vifs"), "Ports cannot take the VIFs", "Unless the node changes first, the apply will fail: "+why)
	}
}

// leavingVIFs returns the VIFs that the plan detaches from the ports of a node: all if it undeploys the machine first.
func (l *Look) leavingVIFs(node *ironic.Node, ports map[string]ironic.Port) (ids []string) {
	undeploys := l.fresh() && node.UUID == l.Seen.ID
	for _, id := range VIFsAt(ports) {
		ours := slices.ContainsFunc(l.Seen.Was.Ports, func(vif VIF) bool { return vif.ID == id && !slices.Contains(l.Wish.Ports, vif) })
		if undeploys || ours {
			ids = append(ids, id)
		}
	}
	return ids
}

// networkData warns if Ironic may put Neutron's network data in the place of the configuration's
// (reference/network-data.md#config-drives-that-ironic-replaces).
func (l *Look) networkData(ctx context.Context) {
	drive, _ := l.Wish.Deployment.ConfigDrive.(map[string]any)
	document, given := drive["network_data"]
	if !given || len(l.Wish.Ports) == 0 || !l.Wish.Node.Set || !l.writes() {
		return
	}
	why := networkdata.Replaceable(document)
	if why == "" {
		return
	}
	node, err := l.Node(ctx)
	if err != nil {
		return // the apply reports what is wrong with the node
	}
	server, err := l.Site.Ironic.Highest(ctx)
	network := expect.AsPlanned(l.Site, node).NetworkInterface
	if err != nil || server <= api.LastKeepingDrives || network != "flat" && network != "neutron" {
		return
	}
	l.warn(decide.At("config_drive", "network_data"), "Ironic may replace network_data",
		fmt.Sprintf("In network_data, %s. The network interface of node %s is %s, and the machine gets VIFs. Ironic 39.0 then writes "+
			"Neutron's network data into the config drive in place of yours, without its bonds and VLANs, and does not say so. Some "+
			"releases before it may, too. Give every link an mtu, such as 1500. The function provider::metal::network_data does that.", why,
			ironic.NodeLabel(node), network))
}

// rescues reports whether the plan changes rescue, to something.
func (l *Look) rescues() bool {
	return !l.Seen.New && !l.Wish.Rescue.IsNull() && l.Wish.Rescue != l.Seen.Was.Rescue
}

// rescue refuses a rescue if the node's rescue interface has no rescue mode.
func (l *Look) rescue(ctx context.Context) {
	if !l.rescues() {
		return
	}
	node, err := l.Site.Ironic.NodeForRefresh(ctx, l.Seen.ID)
	if err != nil || CanRescue(expect.AsPlanned(l.Site, node)) {
		return // the apply reports what is wrong with the node
	}
	l.refuse(decide.At("rescue"), "Node has no rescue mode",
		fmt.Sprintf("The rescue interface of node %s is %q. Set hardware_interfaces = { rescue = \"agent\" } on its metal_host, and "+
			"rescue_kernel and rescue_ramdisk in its driver_info, and apply that first. Or remove rescue.", ironic.NodeLabel(node),
			node.RescueInterface))
}

// deploySteps refuses steps of hardware interfaces that do nothing: Ironic refuses them, or the deployment fails.
func (l *Look) deploySteps(ctx context.Context) {
	steps := l.Wish.Deployment.DeploySteps
	if len(steps) == 0 || !l.Wish.Node.Set || !l.writes() || l.Wish.Content[attrDeploySteps].Unknown {
		return
	}
	node, err := l.Node(ctx)
	if err != nil || expect.AsPlanned(l.Site, node) != node {
		return // the apply reports what is wrong with the node, and this plan may change its interfaces
	}
	for _, step := range steps {
		if name := ironic.InterfacesOf(node)[step.Interface]; machine.LacksFunction(step.Interface, name) {
			l.refuse(decide.At(attrDeploySteps), "Hardware interface lacks the function", fmt.Sprintf("Node %s has the %s "+
				"interface %s, which has no step %s. Set another one in hardware_interfaces on its metal_host, and apply that first. Or "+
				"remove the step.", ironic.NodeLabel(node), step.Interface, name, step.Step))
		}
	}
}

// format warns of a raw image without disk_format, if the plan writes the image.
func (l *Look) format(ctx context.Context) {
	image := l.Wish.Deployment.Image
	if image == nil || l.Wish.Content[attrImage].Unknown || !l.writes() {
		return
	}
	if why := LookAtFormat(ctx, l.Site, *image); why != "" {
		l.warn(decide.At("image", "disk_format"), "Raw image needs disk_format",
			fmt.Sprintf("The image %s %s. Set disk_format = \"raw\". Without it, Ironic's ramdisk fails to write the image (qemu-img: "+
				"Unknown driver 'gpt'), unless the conductor downloads it (image_download_source = local).", imageName(image.URL), why))
	}
}

// netboot warns if the plan boots a machine in a way that its node cannot serve.
func (l *Look) netboot(ctx context.Context) {
	_, overrides := l.Wish.Deployment.InstanceInfo["boot_interface"]
	if l.Wish.Adopt || !l.Wish.Node.Set || !l.writes() && !l.rescues() || overrides || l.Wish.Content[attrInstanceInfo].Unknown {
		return
	}
	node, err := l.Node(ctx)
	if err != nil {
		return // the apply reports what is wrong with the node
	}
	label, boot := ironic.NodeLabel(node), expect.AsPlanned(l.Site, node).BootInterface
	if !l.Wish.LiveISO.IsNull() && ramdisk.BootsNoISO(boot) {
		l.warn(decide.At("live_iso"), "Boot interface boots no ISO",
			fmt.Sprintf("The boot interface of node %s is %s, which boots no ISO. Ironic accepts the deployment all the same, and the "+
				"machine does not boot the ISO. Set hardware_interfaces = { boot = \"ipxe\" }, or one with virtual media, on its "+
				"metal_host.", label, boot))
	}
	if lacks := expect.LacksBootPort(ctx, l.Site, node); lacks != "" {
		l.warn(decide.At("node_id"), "Network boot needs a port",
			fmt.Sprintf("Node %s boots from the network (boot interface %s), and %s. The apply will probably fail. Name the network card "+
				"that boots on its metal_host: ports = { \"<MAC address>\" = { pxe_enabled = true } }.", label, boot, lacks))
	}
}

// deployInterface warns, or refuses, if the deployment lacks what the deploy interface of its node needs.
func (l *Look) deployInterface(ctx context.Context) {
	w := l.Wish
	if w.Adopt || !w.Node.Set || !l.writes() || w.Content[attrImage].Unknown || w.Content[attrInstanceInfo].Unknown || w.LiveISO.Unknown {
		return
	}
	node, err := l.Node(ctx)
	if err != nil {
		return // the apply reports what is wrong with the node
	}
	node = expect.AsPlanned(l.Site, node)
	asks := w.deployed()
	asks.Boot = node.BootInterface
	if boot, overrides := asks.Info["boot_interface"].(string); overrides {
		asks.Boot = boot
	}
	if _, named := w.Deployment.InstanceInfo[deployinterface.KeyOverride]; named {
		if err := expect.CheckInterface(ctx, l.Site, node.Driver, "deploy", string(asks.Override())); err != nil {
			summary, detail := failure.Explain("deploy node "+ironic.NodeLabel(node), err)
			l.refuse(decide.At("instance_info"), summary, detail)
			return
		}
	}
	name := node.ActingDeploy
	if l.fresh() && states.IsOccupied(node) { // it is undeployed before
		name = node.DeployInterface
	}
	for _, p := range deployinterface.Problems(cmp.Or(asks.Override(), deployinterface.Name(name)), asks) {
		say := l.warn
		if p.Refused {
			say = l.refuse
		}
		say(decide.At(p.Attribute), p.Summary, fmt.Sprintf("%s The node is %s.", p.Detail, ironic.NodeLabel(node)))
	}
}

// WarnRescued warns of a machine in rescue mode whose deployment has no rescue.
func WarnRescued(node *ironic.Node) []decide.Notice {
	if mode := RescueOf(ironic.State(node.ProvisionState)); mode != Rescued && mode != RescueFailed {
		return nil
	}
	return []decide.Notice{decide.Warn(nil, "Machine is in rescue mode",
		fmt.Sprintf("Node %s is in state %q, and this resource has not recorded that it put it there. A plan leaves it there unless the "+
			"configuration sets rescue. To start what is deployed: metal unrescue %s.", ironic.NodeLabel(node),
			node.ProvisionState, node.UUID))}
}

// StaysReady reports whether a machine that was ready still counts as that: it runs what is deployed, and was not switched off. before is
// its power state at that time. The driver fake-hardware leaves a machine off that it deploys.
func StaysReady(n *ironic.Node, before PowerState) bool {
	off := before == PowerOn && machine.Power(n) == string(PowerOff)
	return ironic.State(n.ProvisionState) == stateActive && !off
}
