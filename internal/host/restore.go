package host

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/gophercloud/gophercloud/v2/openstack/baremetal/v1/nodes"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/decide"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/failure"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/notes"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/states"
)

// Restoration makes the lost record of a host anew, and touches no machine. The state of a host may be older than what was deployed on it
// since, so the new record stays in maintenance. Deployments and allocations claim theirs; when lost_records is not "restore" any more, a
// plan returns what none has claimed. That plan fails as long as a deployment has not claimed its machine, because its record is lost then.
// Only who claims or returns the machine lets Ironic verify it: that reads the power, and when the maintenance ends, Ironic switches a
// machine back whose power has changed since (reference/ironic.md#a-database-of-yesterday).
type Restoration struct {
	ID       string
	Settings *Settings
	Cabling  WantedCables
	Was      notes.Restoring // the host as Terraform has seen it last
	Instance string          // its reservation then
	IsOther  func(*ironic.Node) bool
	Limit    time.Duration // for the way to manageable
}

// DecideRestore is the plan of a host whose record is restored.
func DecideRestore(label string, was ironic.State) Plan {
	return Plan{Steps: []Step{{Do: DoRestore}}, Notices: []decide.Notice{decide.Warn(nil, "Lost record is restored", fmt.Sprintf(
		"The record of host %s, which was %s when Terraform saw it last, is made anew as its configuration says, in maintenance. The "+
			"machine is neither switched nor written to. What runs on it, its metal_deployment lets Ironic adopt; a machine that nothing "+
			"claims returns to the pool when you remove lost_records. The inventory, the history, and ports that the configuration does "+
			"not have are lost until the next inspection.", label, was))}}
}

// Restored is what a plan knows of a host whose record was made anew and is not in service yet.
type Restored struct {
	State    ironic.State // before the loss
	Instance string       // that has claimed it; "": none
}

// RestoredOf returns what a node says of the restoration of its record; nil if there is none, or it has ended.
func RestoredOf(node *ironic.Node) *Restored {
	if !notes.IsRestoring(node) {
		return nil
	}
	return &Restored{State: notes.RestoringOf(node).State, Instance: notes.Claimant(node)}
}

// DecideReturn is the plan of a host whose record is being restored. returns: it returns to where it was, unless something has claimed it.
func DecideReturn(label string, r Restored, returns bool) Plan {
	switch {
	case r.Instance == "" && !returns:
		return Plan{Notices: []decide.Notice{decide.Warn(nil, "Record is being restored",
			fmt.Sprintf("Nothing has claimed host %s, which stays in maintenance. When the plans of all workspaces are empty, remove "+
				"lost_records from the provider block: then it returns to where it was.", label))}}
	case r.Instance != "":
		return Plan{Notices: []decide.Notice{decide.Warn(nil, "Record is being restored",
			fmt.Sprintf("Host %s is reserved by %s and stays in maintenance until its metal_deployment is applied with lost_records = "+
				"\"restore\", or, if there is none, its metal_allocation without that. Until then, nothing changes it.", label,
				r.Instance))}}
	}
	does := "returns to the pool without a cleaning"
	if r.State != nodes.Available {
		does = "leaves maintenance as manageable, and the plan after this one prepares it"
	}
	return Plan{Steps: []Step{{Do: DoReturn}}, Notices: []decide.Notice{decide.Warn(nil, "Restored host returns", fmt.Sprintf(
		"Host %s was %s before its record was lost, and nothing has claimed it. It %s. If a deployment in another workspace runs on it, "+
			"apply that first, with lost_records = \"restore\".", label, r.State, does))}}
}

// Do makes the record, with ports and traits.
func (r Restoration) Do(ctx context.Context, site *machine.Site) (m *machine.Machine, cables Cables, err error) {
	m, isNew, err := r.record(ctx, site)
	if err != nil {
		return m, cables, err
	}
	if _, err = ChangeSettings(ctx, m, r.fencedSettings()); err != nil {
		return m, cables, err
	}
	if cables, err = ApplyPorts(ctx, m, r.Cabling, isNew); err != nil {
		return m, cables, err
	}
	return m, cables, m.SetMaintenance(ctx, machine.Maintenance{On: true, Reason: machine.ReasonRestoring})
}

// Return ends the restoration of a machine that nothing has claimed. One that was available becomes so again, without a cleaning. A machine
// that is on is not free.
func Return(ctx context.Context, m *machine.Machine, mayBeOn bool, limit time.Duration) error {
	if !notes.IsRestoring(m.Node()) || notes.Claimant(m.Node()) != "" { // claimed since the plan
		return nil
	}
	was := notes.RestoringOf(m.Node()).State
	if was != nodes.Enroll && m.State() != nodes.Available && machine.Preparable(m.Node()) {
		if err := m.Reach(ctx, states.GoalManageable, limit); err != nil {
			return err
		}
	}
	if was == nodes.Available && !m.Node().Retired {
		if !mayBeOn {
			if err := machine.CheckReturn(m.Node()); err != nil {
				return err
			}
		}
		if err := m.Reach(ctx, states.GoalAvailable, limit); err != nil {
			return err
		}
	}
	return m.EndRestoring(ctx)
}

// LeavesDoubt reports whether the plan has returned a machine that was not in the pool, so that something may run on it.
func (p *Plan) LeavesDoubt(node *ironic.Node) bool { return p.Has(DoReturn) && !states.InPool(node) }

// fencedSettings returns the settings of the record until the restoration has ended.
func (r Restoration) fencedSettings() *Settings {
	s := *r.Settings
	s.Settings = s.Settings.Clone()
	s.Settings["automated_clean"], s.Maintenance, s.Written = false, nil, s.Settings
	s.WrittenInfo = slices.Concat(slices.Collect(maps.Keys(s.Settings.Keys("driver_info"))), slices.Collect(maps.Keys(s.Secrets)))
	return &s
}

// record returns the machine with its new record, which this run or one that was killed has made. The first request fences the machine. A
// record of an older backup is fenced and removed first.
func (r Restoration) record(ctx context.Context, site *machine.Site) (m *machine.Machine, isNew bool, err error) {
	node, err := site.Ironic.Node(ctx, r.ID)
	switch {
	case err == nil && notes.IsRestoring(node):
		return site.Record(node), false, nil
	case err == nil:
		err = r.removeOlder(ctx, site.Record(node))
	case api.IsNotFound(err):
		err = nil
	}
	if err != nil {
		return nil, false, err
	}
	m, err = makeAnew(ctx, site, r.ID, r.Settings.Enrollment(), r.Cabling, r.Limit, r.create)
	return m, true, err
}

func (r Restoration) create(ctx context.Context, site *machine.Site, id string, settings ironic.Settings) (*ironic.Node, error) {
	settings = settings.Clone()
	was := r.Was
	was.Clean = nil
	if clean, sets := settings["automated_clean"].(bool); sets {
		was.Clean = &clean
	}
	settings.SetKey("extra", notes.KeyRestoring, was)
	if settings.Text("name") == "" {
		settings.SetKey("extra", notes.KeyEnrolled, true)
	}
	settings["maintenance"], settings["automated_clean"] = true, false
	if r.Instance != "" && !states.DeployFailed(r.Was.State) && !states.BeingDeployed(r.Was.State) { // which nothing restores
		settings["instance_uuid"] = r.Instance
	}
	node, err := failure.CreateNode(ctx, site.Ironic, id, settings)
	return node, site.ExplainDriver(ctx, settings.Text("driver"), err)
}

// removeOlder removes the record of an older backup. Ironic does not touch the machine of a node that it deletes.
func (r Restoration) removeOlder(ctx context.Context, m *machine.Machine) error {
	node := m.Node()
	switch {
	case !r.IsOther(node):
		return fmt.Errorf("node %s has a record in Ironic again. Nothing was done. Plan again", ironic.NodeLabel(node))
	case node.InstanceUUID != "" && node.InstanceUUID != r.Instance:
		return machine.RefusedFor(node, fmt.Sprintf("the record that Ironic has of it is reserved by %s, which this host does not know. "+
			"If that is a record of an older backup, delete it (metal delete --dead)", node.InstanceUUID))
	}
	if err := m.SetMaintenance(ctx, machine.Maintenance{On: true, Reason: machine.ReasonRestoring}); err != nil {
		return err
	}
	if node.Protected {
		var patch ironic.Patch
		patch.Remove("/protected")
		if err := m.Patch(ctx, patch); err != nil {
			return err
		}
	}
	return m.Site().Ironic.DeleteNode(ctx, node.UUID)
}

// RefuseRestoring returns the error of a change of a host whose record is being restored.
func RefuseRestoring(node *ironic.Node) error {
	return &failure.Error{
		Kind: machine.KindRefused, Node: node,
		Fact: fmt.Sprintf("the record of node %s is being restored. Nothing was done to it", ironic.NodeLabel(node)),
		Advice: "First apply its metal_deployment, or its metal_allocation, with lost_records = \"restore\". If there is none any more, " +
			"see the guide \"Ironic has lost its records\".",
	}
}
