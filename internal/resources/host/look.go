package host

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/diag"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/decide"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/framework"
	hosts "github.com/terraform-provider-metal/terraform-provider-metal/internal/host"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/expect"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/failure"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/ramdisk"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/oneview"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/oneview/sharing"
)

// question is what a plan of a host asks the server about. state is nil for a new host.
type question struct {
	plan, config, state *model
	wish                hosts.Wish
	who                 hosts.Intent         // what no other node may have too
	open                []hosts.HardwarePart // hardware settings that are not known to be on the machine
	onMachine           hosts.Hardware       // those that are
	diags               *diag.Diagnostics
}

// decide decides about a host. It looks up what the decision depends on.
func (h *host) decide(ctx context.Context, q question, seen hosts.Seen) hosts.Plan {
	var asked []hosts.Question
	for {
		decided := hosts.Decide(q.wish, seen)
		again := false
		q.open, q.onMachine = decided.Open, seen.OnMachine
		for _, ask := range decided.Asks {
			if !slices.Contains(asked, ask) && h.Known() {
				asked = append(asked, ask)
				again = h.answer(ctx, ask, q, &seen.Answers) || again
			}
		}
		if !again {
			return decided
		}
	}
}

// answer looks up what Decide asks for, and reports whether there is an answer.
func (h *host) answer(ctx context.Context, ask hosts.Question, q question, to *hosts.Answers) bool {
	switch ask {
	case hosts.AskHardware:
		to.Machine = h.lookAtHardware(ctx, q)
		return to.Machine != nil
	case hosts.AskDrift:
		to.ComparedNow = h.compare(ctx, q)
		return to.ComparedNow != nil
	case hosts.AskExpected:
		to.ProofNow = h.proofNow(ctx, q)
		return to.ProofNow != nil
	case hosts.AskInUse:
		to.InUse = h.lookAtUsers(ctx, q)
		return to.InUse != nil
	case hosts.AskNetwork:
		to.Network, to.OpenPorts = h.lookAtNetwork(ctx, q)
		return to.Network != nil
	case hosts.AskConsole:
		to.Console = hosts.LookAtConsole(ctx, h.Site, h.networkQuestion(ctx, q), q.wish.Interfaces["console"])
		return to.Console != nil
	case hosts.AskInterfaces:
		to.Interfaces = hosts.LookAtInterfaces(ctx, h.Site, h.networkQuestion(ctx, q), q.wish.Interfaces)
		return len(to.Interfaces) > 0
	case hosts.AskFunctions:
		to.Functions = hosts.LookAtFunctions(ctx, h.Site, h.networkQuestion(ctx, q), q.wish.Interfaces)
		return true
	case hosts.AskTakeOver:
		found := h.takesOver(ctx, q.config)
		if used := h.used(ctx, q.config); used != nil {
			if whole, err := h.Site.Ironic.NodeForRefresh(ctx, used.UUID); err == nil { // it names the instance
				used = whole
			}
			to.Replaces = ironic.NodeLabel(used) + ", which is " + hosts.Occupant(used)
			expect.ReplaceUsed(h.Site)
		}
		if found == nil {
			return to.Replaces != ""
		}
		if h.announces(q.diags, q.plan.describe(), found) {
			to.TakesOver = ironic.NodeLabel(found.Node)
		}
		to.Settled = found.IsSettled()
		return to.Settled || to.TakesOver+to.Replaces != ""
	case hosts.AskProfile:
		to.Profile, to.ProfileErr = h.lookAtProfile(ctx, q)
		return to.Profile+to.ProfileErr != ""
	case hosts.AskDisks:
		found, err := h.Site.Ironic.Inventory(ctx, q.state.ID.ValueString())
		if err == nil && found != nil { // without an answer, the plan says less
			to.Disks = found.Disks
		}
		return to.Disks != nil
	case hosts.AskRunbook:
		to.Runbooks = h.lookAtRunbook(ctx, q, q.plan.CleaningRunbook.ValueString())
		return to.Runbooks != nil
	case hosts.AskQualifying:
		to.Qualifying = h.lookAtRunbook(ctx, q, q.wish.Qualification.V.Runbook)
		return to.Qualifying != nil
	case hosts.AskNeighbours:
		to.Neighbours = hosts.LookAtNeighbours(ctx, h.Site, q.who, h.nodeOf(ctx, q))
		return to.Neighbours != nil
	}
	return false
}

// nodeOf returns the node that the host has, as the state knows it, or that a new one takes over; nil if there is none.
func (h *host) nodeOf(ctx context.Context, q question) *ironic.Node {
	if q.state == nil {
		if over := h.takesOver(ctx, q.config); over != nil {
			return over.Node
		}
		return nil
	}
	node := q.state.node()
	node.UUID, node.Name, node.DriverInfo = q.state.ID.ValueString(), q.state.Name.ValueString(), q.state.driverInfo(ctx)
	return node
}

// lookAtHardware reads what the machine has of the hardware settings that are not known to be on it; nil if it is not known.
func (h *host) lookAtHardware(ctx context.Context, q question) *hosts.HardwareSeen {
	if q.state == nil {
		over := h.takesOver(ctx, q.config)
		if over == nil || over.By == nil {
			return nil
		}
		node, err := h.Site.Ironic.Node(ctx, over.Node.UUID)
		if err != nil {
			return nil
		}
		seen, _ := hosts.SeeHardware(ctx, h.Site, node, []hosts.HardwarePart{hosts.PartRAID}) // RAID is in the node
		return &seen
	}
	if q.config.tooOld(ctx, h) {
		return nil // checkVersions reports it
	}
	node, err := h.Site.Ironic.NodeForRefresh(ctx, q.state.ID.ValueString())
	var seen hosts.HardwareSeen
	if err == nil {
		seen, err = hosts.SeeHardware(ctx, h.Site, node, q.open)
	}
	if err != nil {
		framework.ReportUndone(q.diags, "read the hardware settings of host "+q.plan.describe(), err)
		return nil
	}
	return &seen
}

// compare compares the machine with the hardware settings that were applied to it; nil if it is not known.
func (h *host) compare(ctx context.Context, q question) *hosts.HardwareComparison {
	node, err := h.Site.Ironic.NodeForRefresh(ctx, q.state.ID.ValueString())
	if err != nil || q.config.tooOld(ctx, h) {
		return nil // the refresh or checkVersions has reported it
	}
	now, notices := hosts.CompareHardware(ctx, h.Site, node, q.wish.Hardware.Both(q.onMachine), nil)
	framework.Show(q.diags, notices...)
	return now
}

func (m *model) tooOld(ctx context.Context, h *host) bool {
	version, err := h.Site.Ironic.Microversion(ctx)
	if err != nil {
		return true
	}
	return slices.ContainsFunc(hardwareAttributes(), func(a attribute) bool {
		return a.feature != nil && a.feature(m).Used && a.feature(m).Since > version
	})
}

// lookAtUsers returns the use of the host's server by OneView users; nil if nobody uses it, or it is not known.
func (h *host) lookAtUsers(ctx context.Context, q question) *hosts.InUse {
	if !h.HasOneView() {
		return nil
	}
	node := &ironic.Node{UUID: q.plan.describe()}
	if framework.IsSet(q.plan.ID) {
		known, err := h.Site.Ironic.NodeForRefresh(ctx, q.plan.ID.ValueString())
		if err != nil {
			return nil // the refresh has reported it
		}
		copied := *known
		node = &copied
	}
	info := map[string]any{}
	maps.Copy(info, node.DriverInfo)
	maps.Copy(info, objectOf(q.plan.DriverInfo))
	node.DriverInfo = info
	err := h.Pool.CheckUsable(ctx, node)
	why := sharing.InUse(err)
	if why == "" {
		return nil // the apply reports other errors
	}
	return &hosts.InUse{Why: why, Error: err.Error()}
}

// lookAtProfile returns the temporary server profile of the machine, or why it is not known whether it has one.
func (h *host) lookAtProfile(ctx context.Context, q question) (label, failure string) {
	if !h.HasOneView() {
		return "", ""
	}
	node, err := h.Site.Ironic.NodeForRefresh(ctx, q.plan.ID.ValueString())
	if err != nil {
		return "", "" // the refresh has reported it
	}
	profile, err := h.Pool.Temporarily(ctx, node)
	switch {
	case err != nil:
		return "", err.Error()
	case profile != nil:
		return oneview.ProfileLabel(profile), ""
	}
	return "", ""
}

// lookAtRunbook returns what Ironic knows of a runbook that the host names; nil if it does not answer.
func (h *host) lookAtRunbook(ctx context.Context, q question, name string) *hosts.Runbook {
	version, err := h.Site.Ironic.Microversion(ctx)
	if err != nil || version < api.VersionRunbooks {
		return nil // checkVersions reports it
	}
	found, err := expect.FindRunbook(ctx, h.Site, name)
	seen := &hosts.Runbook{
		Found: found.Procedure, Open: found.Open, First: found.First, Server: version, HasTraits: version >= api.VersionRunbookTraits,
		Traits: h.plannedTraits(ctx, q), Project: cmp.Or(q.plan.Owner.ValueString(), h.Site.Ironic.Project()),
	}
	switch hidden := api.IsForbidden(err) || api.IsNotFound(err) && h.Site.Ironic.Project() != ""; {
	case hidden:
		_, seen.Hidden = failure.Explain("", err)
	case err != nil && !api.IsNotFound(err):
		framework.ReportUndone(q.diags, "read a runbook of host "+q.plan.describe(), err)
		return nil
	}
	return seen
}

// plannedTraits returns the traits of the node after the apply; unknown if they are not known.
func (h *host) plannedTraits(ctx context.Context, q question) decide.Value[[]string] {
	wanted := framework.StringSet(q.plan.Traits)
	switch {
	case !framework.FullyKnown(ctx, q.plan.Traits), q.state == nil && h.takesOver(ctx, q.config) != nil:
		return decide.Unknown[[]string]()
	case q.state == nil:
		return decide.Known(wanted)
	}
	node, err := h.Site.Ironic.NodeForRefresh(ctx, q.state.ID.ValueString())
	if err != nil {
		return decide.Unknown[[]string]()
	}
	had := framework.StringSet(q.state.Traits)
	kept := slices.DeleteFunc(slices.Clone(node.Traits), func(trait string) bool {
		return slices.Contains(had, trait) && !slices.Contains(wanted, trait)
	})
	return decide.Known(append(kept, wanted...))
}

// sharedWithout says why Ironic may not prepare a new machine: it is shared with OneView, and the provider has no OneView; "" if it may.
func (h *host) sharedWithout(plan, config *model) string {
	if h.Site == nil || h.Pool != nil {
		return ""
	}
	b, err := sharing.BindingOf(&ironic.Node{DriverInfo: objectOf(config.DriverInfo)})
	if err != nil || !b.Shared() {
		return ""
	}
	return sharing.Unguarded(plan.describe(), b.HardwareURI)
}

// lookAtNetwork returns how the machine will boot, and whether an inspection may bring its ports; nil if it is not known.
func (h *host) lookAtNetwork(ctx context.Context, q question) (boot *ramdisk.NetworkBoot, open bool) {
	if q.plan.hasBootPort(ctx) {
		return &ramdisk.NetworkBoot{}, false
	}
	asks := h.networkQuestion(ctx, q)
	asks.Boot, asks.Inspect, asks.Ports = q.wish.Interfaces["boot"], q.wish.Interfaces["inspect"], q.plan.portWishes(ctx)
	if q.state != nil {
		asks.Had = slices.Collect(maps.Keys(q.state.ports(ctx)))
	}
	return hosts.LookAtNetwork(ctx, h.Site, asks)
}

func (h *host) networkQuestion(ctx context.Context, q question) hosts.NetworkQuestion {
	asks := hosts.NetworkQuestion{Driver: q.plan.Driver.ValueString()}
	if q.state != nil {
		asks.Node = q.state.ID.ValueString()
	} else if over := h.takesOver(ctx, q.config); over != nil {
		asks.Node = over.Node.UUID
	}
	return asks
}

// planCabling refuses ports and port groups that Ironic would not accept, and says what happens to their switch ports and which cables are
// not as expected. It asks what the cards have heard if expect_neighbor is new.
func (h *host) planCabling(ctx context.Context, q question, kept private) {
	wish, seen := q.config.cablingWish(ctx, q.plan), q.state.cablingSeen(ctx, kept)
	wish.Label = q.plan.describe()
	if !q.config.Ports.IsUnknown() {
		wish.Removed = q.config.cablingOf(ctx, kept.Managed).WithoutPorts
	}
	if h.Known() && q.state != nil && len(wish.Removed) > 0 {
		seen.VIFs, seen.Held = map[string]string{}, q.plan.Maintenance.ValueBool()
		ports, _ := h.Site.Ironic.PortsForRefresh(ctx, q.state.ID.ValueString()) // the refresh has reported an error
		for mac, port := range ports {
			seen.VIFs[mac] = port.VIF()
		}
	}
	if h.Known() && q.state != nil && len(wish.Ends()) > 0 {
		if node, err := h.Site.Ironic.NodeForRefresh(ctx, q.state.ID.ValueString()); err == nil && seen.Heard == nil {
			var notices []decide.Notice
			seen.Heard, notices = hosts.HearNeighbours(ctx, h.Site, node, nil)
			framework.Show(q.diags, notices...)
		}
		seen.Other = hosts.ShareCables(h.Site, wish, seen.Heard)
	}
	if h.Known() && len(wish.Groups) > 0 {
		seen.KeptNetworks = h.keepsNetworks(ctx)
	}
	if h.Known() && seen.HasSwitches(wish) {
		seen.Interface = h.networkQuestion(ctx, q).NetworkInterface(ctx, h.Site,
			q.plan.hardwareInterface(ctx, q.config, q.state, "network"))
		if version, err := h.Site.Ironic.Highest(ctx); err == nil { // another look reports an error
			seen.Server = version
		}
	}
	framework.Show(q.diags, hosts.DecidePorts(wish, seen)...)
}

// keepsNetworks reports whether Ironic has physical networks of port groups, and microversion of the provider block hides them.
func (h *host) keepsNetworks(ctx context.Context) bool {
	newest, err := h.Site.Ironic.Highest(ctx)
	version, verr := h.Site.Ironic.Microversion(ctx)
	return err == nil && verr == nil && version < api.VersionGroupNetwork && newest >= api.VersionGroupNetwork
}

// hasBootPort reports whether a planned port may boot the machine.
func (m *model) hasBootPort(ctx context.Context) bool {
	return m.Ports.IsUnknown() || hosts.HasBootPort(m.portWishes(ctx))
}

// takesOver returns the node that a new host would take over now; nil if there is none, or it is not known yet. A node that discovery names
// in this run is known by its name alone.
func (h *host) takesOver(ctx context.Context, config *model) *hosts.Found {
	if !h.Known() || !framework.FullyKnown(ctx, config.Name, config.Owner, config.Lessee) {
		return nil
	}
	return hosts.WouldTakeOver(ctx, h.Site, config.candidate(ctx))
}

// used returns the node in use of the host in state that a new host replaces; nil if there is none, or it is not known yet.
func (h *host) used(ctx context.Context, config *model) *ironic.Node {
	if !h.Known() || !framework.FullyKnown(ctx, config.Name) {
		return nil
	}
	return hosts.FormerInUse(ctx, h.Site, config.candidate(ctx))
}

// candidate returns what no other node may have too, as far as it is known.
func (m *model) candidate(ctx context.Context) hosts.Candidate {
	if framework.FullyKnown(ctx, m.BMC, m.Driver, m.DriverInfo, m.PowerControl, m.Ports) {
		return hosts.CandidateOf(m.hostSettings(ctx, nil).Enrollment(), m.cablingOf(ctx, nil))
	}
	return hosts.Candidate{Name: m.Name.ValueString(), Tenant: machine.Tenant{Owner: m.Owner.ValueString(), Lessee: m.Lessee.ValueString()}}
}

// announces warns of a node that a new host takes over, once in a run. It reports whether discovery has created the node, and there is more
// to say.
func (h *host) announces(diags *diag.Diagnostics, host string, found *hosts.Found) (discovered bool) {
	notices, discovered := hosts.AnnounceTakeOver(h.Site, host, found)
	framework.Show(diags, notices...)
	return discovered
}
