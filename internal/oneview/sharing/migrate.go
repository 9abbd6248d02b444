package sharing

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/gophercloud/gophercloud/v2/openstack/baremetal/v1/nodes"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/states"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/oneview"
)

// MigrateOptions selects the nodes that move from pre-allocation to dynamic allocation.
type MigrateOptions struct {
	All   bool     // every node that is pre-allocated
	Nodes []string // else these, by UUID or name

	// ReleaseUnknown also removes profiles without proof that they were made for the node, if the node is idle. Migrate never removes such
	// a profile from a server that is on, or that Sync has found in use by OneView.
	ReleaseUnknown bool

	DryRun   bool          // report what would be done, and change nothing
	Parallel int           // number of nodes at once; zero: DefaultParallel
	Limit    time.Duration // time-out of the removal of one profile; zero: DefaultLimit
	Report   func(Finding) // is called with one finding at a time; may be nil
	Progress Progress      // may be nil
}

// MigrateSummary counts the results of a migration.
type MigrateSummary struct {
	Nodes int // selected for migration
	Tally
}

// Migrate moves nodes from pre-allocation to dynamic allocation. For a node with an instance it only records the profile in
// driver_info. It puts an idle node into maintenance with ReasonMigrating, removes its profile if that was provably made for the
// node, and ends the maintenance. Another user's maintenance stays. Migrate continues the work of an interrupted run, and of
// Ironic's former tool.
//
// Migrate reports a Finding for a node that it cannot migrate, and does not change the node. It returns an error if the whole run
// fails.
func (p *Pool) Migrate(ctx context.Context, o MigrateOptions) (MigrateSummary, error) {
	o.Parallel = cmp.Or(o.Parallel, DefaultParallel)
	m := &migration{pool: p, o: o, findings: &findings{report: o.Report, progress: o.Progress}}
	all, err := m.selected(ctx)
	if err != nil {
		return MigrateSummary{}, err
	}
	m.findings.each(ctx, "migrating nodes", o.Parallel, all, m.migrate)
	return MigrateSummary{Nodes: len(all), Tally: m.findings.tally}, ctx.Err()
}

type migration struct {
	pool     *Pool
	o        MigrateOptions
	findings *findings
}

// keyMigrating is the key in extra of a node which says that a migration removes its profile. It distinguishes an interrupted
// migration from an idle node that has got a profile since.
const keyMigrating = "metal_oneview_migrating"

// migrating reports whether a run has begun to migrate a node and has not finished.
func migrating(node *ironic.Node) bool {
	return (node.Maintenance && node.MaintenanceReason == ReasonMigrating) || node.Extra[keyMigrating] != nil
}

// selected returns the nodes to migrate, ordered by name, or as Nodes lists them.
func (m *migration) selected(ctx context.Context) ([]*candidate, error) {
	if m.o.All {
		found, err := m.pool.Site.Ironic.ListNodeFields(ctx, ironic.NodeFilter{}, syncFields)
		if err != nil {
			return nil, fmt.Errorf("list nodes: %w", err)
		}
		var all []*candidate
		for i := range found {
			if c := m.candidate(ctx, &found[i]); c != nil {
				all = append(all, c)
			}
		}
		slices.SortFunc(all, func(a, b *candidate) int { return cmp.Compare(a.node.Name, b.node.Name) })
		return all, nil
	}
	if len(m.o.Nodes) == 0 {
		return nil, errors.New("no nodes to migrate: name some, or select all")
	}
	var all []*candidate
	for _, ref := range m.o.Nodes {
		node, err := m.pool.Site.Ironic.Node(ctx, ref)
		if api.IsNotFound(err) {
			err = errors.New("there is no node of this name or UUID in Ironic")
		}
		if err != nil {
			m.findings.fail(ctx, &ironic.Node{UUID: ref}, "migrate it", err)
			continue
		}
		if c := m.candidate(ctx, node); c != nil {
			all = append(all, c)
		} else if node.DriverInfo[keyHardware] == nil {
			m.findings.fail(ctx, node, "migrate it", fmt.Errorf("its driver_info has no %s, so it is not in OneView", keyHardware))
		} else {
			m.findings.tell(node, Unchanged, "it has dynamic allocation already")
		}
	}
	return all, nil
}

// candidate returns a node to be migrated; nil if it is not in OneView or is migrated already.
func (m *migration) candidate(ctx context.Context, node *ironic.Node) *candidate {
	binding, err := BindingOf(node)
	if err != nil {
		m.findings.fail(ctx, node, "migrate it", err)
		return nil
	}
	declared, err := modeOf(node.DriverInfo[keyDynamic])
	if binding.HardwareURI == "" || err != nil || (declared == Dynamic && !migrating(node)) {
		return nil
	}
	return &candidate{node: node, binding: binding}
}

// migratable are the states without an operation in progress in which a node can be migrated: those of Ironic's former tool.
var migratable = []ironic.State{
	nodes.Enroll, nodes.Manageable, nodes.Available, nodes.Active, nodes.InspectFail, nodes.CleanFail, nodes.Error,
}

type step struct {
	text    string // description of the change
	warning string // for the operator; may be empty

	release  string       // profile to be removed; empty: none
	from     string       // its hardware
	unproven bool         // there is no proof that it was made for the node: --release-unknown
	last     ironic.Patch // of driver_info, which ends the migration
}

// migrate migrates one node: it reads the node and its hardware, plans, and carries the plan out.
func (m *migration) migrate(ctx context.Context, c *candidate) {
	const doing = "migrate it"
	node, err := m.pool.Site.Ironic.Node(ctx, c.node.UUID)
	if err != nil {
		m.findings.fail(ctx, c.node, doing, err)
		return
	}
	if state := ironic.State(node.ProvisionState); !slices.Contains(migratable, state) || node.Reservation != "" {
		m.findings.tell(node, Skipped, fmt.Sprintf("it cannot be migrated in state %q: run this again when the operation on it has ended",
			state))
		return
	}
	next, err := m.plan(ctx, node)
	if err == nil && !m.o.DryRun {
		err = m.do(ctx, node, next)
	}
	if err != nil {
		m.findings.fail(ctx, node, doing, err)
		return
	}
	m.findings.tell(node, Changed, next.text)
	if next.warning != "" {
		m.findings.tell(node, Warned, next.warning)
	}
}

// plan returns the migration of a node, or the reason why it cannot be migrated.
func (m *migration) plan(ctx context.Context, node *ironic.Node) (step, error) {
	binding, err := BindingOf(node)
	if err != nil {
		return step{}, err
	}
	hardware, err := m.pool.OneView.Hardware(ctx, binding.HardwareURI)
	if err != nil {
		return step{}, err
	}
	var next step
	next.last.Set("/driver_info/"+keyDynamic, true)
	if hardware.ProfileURI == "" {
		next.text = hardware.Name + " has no server profile: dynamic allocation on"
		if states.Deployed(node) {
			next.warning = "it is deployed, but its hardware has no server profile"
		}
		if binding.AppliedURI != "" {
			next.last.Remove("/driver_info/" + keyApplied)
		}
		return next, nil
	}
	profile, err := m.pool.OneView.Profile(ctx, hardware.ProfileURI)
	if err != nil {
		return step{}, err
	}
	if states.Deployed(node) {
		return m.planInstance(next, binding, hardware, profile)
	}
	return m.planIdle(next, node, binding, hardware, profile)
}

// planInstance plans the migration of a node with an instance, which uses the profile on the hardware.
func (m *migration) planInstance(next step, binding Binding, hardware *oneview.Hardware, profile *oneview.Profile) (step, error) {
	if binding.AppliedURI != "" && !oneview.SameURI(binding.AppliedURI, hardware.ProfileURI) {
		return step{}, fmt.Errorf("its driver_info says that server profile %s is applied to it, but %s has %s. Find out which profile "+
			"it uses, and remove or correct %s in its driver_info", binding.AppliedURI, oneview.HardwareLabel(hardware),
			oneview.ProfileLabel(profile), keyApplied)
	}
	next.last.Set("/driver_info/"+keyApplied, hardware.ProfileURI)
	next.text = fmt.Sprintf("it has an instance: server profile %s recorded, dynamic allocation on", profile.Name)
	return next, nil
}

// planIdle plans the migration of an idle node: its profile is removed, if it was made for the node.
func (m *migration) planIdle(next step, node *ironic.Node, binding Binding, hardware *oneview.Hardware,
	profile *oneview.Profile,
) (step, error) {
	declared, err := modeOf(node.DriverInfo[keyDynamic])
	if err != nil {
		return step{}, err
	}
	applied := oneview.SameURI(binding.AppliedURI, hardware.ProfileURI)
	if applied && declared == Undeclared && !migrating(node) {
		next.text = fmt.Sprintf("server profile %s was applied dynamically: dynamic allocation on", profile.Name)
		return next, nil
	}
	next.unproven = !applied && !provenFor(profile, node, hardware)
	if next.unproven {
		if err := m.mayRelease(node, hardware, profile); err != nil {
			return step{}, err
		}
		if binding.AppliedURI != "" { // that profile is not on the hardware
			next.last.Remove("/driver_info/" + keyApplied)
		}
	}
	next.release, next.from = hardware.ProfileURI, hardware.URI
	next.text = fmt.Sprintf("it is idle: server profile %s removed from %s, dynamic allocation on", profile.Name, hardware.Name)
	if node.Maintenance && node.MaintenanceReason != ReasonMigrating {
		next.text += "; it stays in maintenance"
	}
	return next, nil
}

// mayRelease returns the reason why a profile without proof that it was made for the node is not removed.
func (m *migration) mayRelease(node *ironic.Node, hardware *oneview.Hardware, profile *oneview.Profile) error {
	what := fmt.Sprintf("server profile %s on %s", oneview.ProfileLabel(profile), oneview.HardwareLabel(hardware))
	if migrating(node) {
		what += " (from which an interrupted run was about to take it, and has left the node in maintenance)"
	}
	switch {
	case !m.o.ReleaseUnknown:
		return fmt.Errorf("there is no proof that %s was made for this node. Ask who uses it; if it was made for this node and is not "+
			"needed any more, run this again with --release-unknown", what)
	case node.Maintenance && node.MaintenanceReason == ReasonInUse:
		return fmt.Errorf("the node's maintenance_reason says that %s is in use by OneView. If that is wrong, end the maintenance first",
			what)
	case hardware.PowerState != oneview.PowerOff:
		return fmt.Errorf("there is no proof that %s was made for this node, and the server is not off (%s). If the server is not in "+
			"use, switch it off first", what, hardware.PowerState)
	}
	return nil
}

// do carries a plan out. After an interruption at any step the next run continues.
func (m *migration) do(ctx context.Context, node *ironic.Node, next step) error {
	if next.release != "" {
		if err := m.release(ctx, node, next); err != nil {
			return err
		}
	}
	now, err := m.pool.Site.Ironic.Node(ctx, node.UUID) // the removal of a profile takes minutes, in which the node may have changed
	if err != nil {
		return err
	}
	patch := next.last
	if now.Maintenance && now.MaintenanceReason == ReasonMigrating {
		patch.Set("/maintenance", false)
	}
	if now.Extra[keyMigrating] != nil {
		patch.Remove("/extra/" + keyMigrating)
	}
	_, err = m.pool.Site.PatchNode(ctx, node.UUID, patch)
	return err
}

// release removes the profile of an idle node. Ironic does not allocate the node meanwhile, because it is in maintenance.
func (m *migration) release(ctx context.Context, node *ironic.Node, next step) error {
	if !node.Maintenance {
		if err := m.pool.Site.Ironic.SetMaintenance(ctx, node.UUID, true, ReasonMigrating); err != nil {
			return err
		}
	}
	if next.unproven {
		return m.discard(ctx, node, next)
	}
	var patch ironic.Patch
	patch.Set("/driver_info/"+keyApplied, next.release)
	patch.Set("/driver_info/"+keyDynamic, true)
	patch.Set("/extra/"+keyMigrating, true)
	if _, err := m.pool.Site.PatchNode(ctx, node.UUID, patch); err != nil {
		return err
	}
	return m.pool.Release(ctx, ReleaseOptions{NodeID: node.UUID, ProfileURI: next.release, Limit: m.o.Limit})
}

// discard deletes a profile without proof that it was made for the node, if the server is off. It does not write the profile into
// driver_info: after an interruption the next run must not find a proof that this run did not have.
func (m *migration) discard(ctx context.Context, node *ironic.Node, next step) error {
	now, err := m.pool.Site.Ironic.Node(ctx, node.UUID) // with its maintenance
	if err != nil {
		return err
	}
	if states.Deployed(now) || now.Reservation != "" || !states.Parked(ironic.State(now.ProvisionState)) {
		err = errOutdated
	} else {
		deadline := time.Now().Add(cmp.Or(m.o.Limit, DefaultLimit))
		err = m.pool.remove(ctx, removal{profileURI: next.release, hardwareURI: next.from, deadline: deadline, onlyOff: true})
	}
	if (errors.Is(err, errNotOff) || errors.Is(err, errOutdated)) && !node.Maintenance && now.MaintenanceReason == ReasonMigrating {
		return errors.Join(err, m.pool.Site.Ironic.SetMaintenance(ctx, node.UUID, false, "")) // the removal has not started
	}
	return err
}

// provenFor reports whether a profile on hardware was provably made for a node: it has our mark, or the name of a temporary profile,
// which Ironic's former drivers used too.
func provenFor(profile *oneview.Profile, node *ironic.Node, hardware *oneview.Hardware) bool {
	return oneview.SameURI(profile.HardwareURI, hardware.URI) && (madeFor(profile, node.UUID) || isTemporary(profile.Name, node.UUID))
}
