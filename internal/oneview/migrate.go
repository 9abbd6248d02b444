package oneview

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/gophercloud/gophercloud/v2/openstack/baremetal/v1/nodes"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
)

// MigrateOptions says which nodes move from pre-allocation to dynamic allocation, and how.
type MigrateOptions struct {
	All   bool     // every node that is pre-allocated
	Nodes []string // else these, by UUID or name

	// ReleaseUnknown also takes profiles from idle nodes that nothing proves to be the nodes' own. A server that is on is
	// spared even then, and so is one that Sync has found in use by OneView.
	ReleaseUnknown bool

	DryRun   bool          // tell what would be done, and do nothing
	Parallel int           // nodes that are worked on at once; zero: DefaultParallel
	Limit    time.Duration // for one profile to be removed; zero: DefaultLimit
	Report   func(Finding) // is called with one finding at a time; may be nil
	Progress Progress      // may be nil
}

// MigrateSummary is what a migration saw and did.
type MigrateSummary struct {
	Nodes int // that were to be migrated
	Tally
}

// Migrate moves nodes from pre-allocation to dynamic allocation. A node with an instance is told in driver_info what profile
// it has; nothing else changes. An idle node is put into maintenance with ReasonMigrating, loses its profile if that is
// provably its own, and comes out of maintenance again. Maintenance that somebody else has set stays. What an interrupted
// run, or Ironic's former tool, has begun is finished.
//
// A node that cannot be migrated is a Finding, and stays as it is. An error is one of the whole run.
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

// migration is the memory of one run.
type migration struct {
	pool     *Pool
	o        MigrateOptions
	findings *findings
}

// keyMigrating is where extra of a node says that its profile is being taken away by a migration: what tells one that was
// interrupted from an idle node that has got a profile since.
const keyMigrating = "metal_oneview_migrating"

// migrating reports whether a run has begun with a node and has not ended.
func migrating(node *ironic.Node) bool {
	return (node.Maintenance && node.MaintenanceReason == ReasonMigrating) || node.Extra[keyMigrating] != nil
}

// selected are the nodes to migrate, in the order of their names, or as they were named.
func (m *migration) selected(ctx context.Context) ([]*candidate, error) {
	if m.o.All {
		found, err := m.pool.Ironic.ListNodeFields(ctx, ironic.NodeFilter{}, syncFields)
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
		return nil, errors.New("no nodes to migrate are named, nor are all wanted")
	}
	var all []*candidate
	for _, ref := range m.o.Nodes {
		node, err := m.pool.Ironic.Node(ctx, ref)
		if ironic.IsNotFound(err) {
			err = errors.New("there is no node of this name or UUID in Ironic")
		}
		if err != nil {
			m.findings.fail(ctx, &ironic.Node{UUID: ref}, "migrate it", err)
			continue
		}
		if c := m.candidate(ctx, node); c != nil {
			all = append(all, c)
		} else if node.DriverInfo[keyHardware] == nil {
			m.findings.fail(ctx, node, "migrate it", fmt.Errorf("its driver_info has no %s: it has nothing to do with OneView", keyHardware))
		} else {
			m.findings.tell(node, Unchanged, "it has dynamic allocation already")
		}
	}
	return all, nil
}

// candidate is a node that is to be migrated, or nil: it has nothing to do with OneView, or is migrated already.
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

// migratable are the states in which a node is at rest, with or without an instance: those of Ironic's former tool.
var migratable = []ironic.State{
	nodes.Enroll, nodes.Manageable, nodes.Available, nodes.Active, nodes.InspectFail, nodes.CleanFail, nodes.Error,
}

// step is what a migration does with one node.
type step struct {
	text    string // what is done
	warning string // what else somebody should know; may be empty

	release  string       // a profile to be taken away; empty: none
	from     string       // the hardware that it is on
	unproven bool         // nothing proves it to be the node's own: -release-unknown
	last     ironic.Patch // of driver_info, which ends the migration
}

// migrate works on one node: looks at it and its hardware now, plans, and does.
func (m *migration) migrate(ctx context.Context, c *candidate) {
	const doing = "migrate it"
	node, err := m.pool.Ironic.Node(ctx, c.node.UUID)
	if err != nil {
		m.findings.fail(ctx, c.node, doing, err)
		return
	}
	if state := ironic.State(node.ProvisionState); !slices.Contains(migratable, state) || node.Reservation != "" {
		m.findings.tell(node, Skipped, fmt.Sprintf("it is in state %q, in which it cannot be migrated: run this again when it is at rest", state))
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

// plan says what to do with a node, or why it cannot be migrated.
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
		if ironic.Deployed(node) {
			next.warning = "something is deployed on it, but its hardware has no server profile"
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
	if ironic.Deployed(node) {
		return m.planInstance(next, binding, hardware, profile)
	}
	return m.planIdle(next, node, binding, hardware, profile)
}

// planInstance plans for a node with an instance: what is on its hardware is what the instance runs with.
func (m *migration) planInstance(next step, binding Binding, hardware *Hardware, profile *Profile) (step, error) {
	if binding.AppliedURI != "" && !sameURI(binding.AppliedURI, hardware.ProfileURI) {
		return step{}, fmt.Errorf("its driver_info says that server profile %s is applied to it, but %s has %s. "+
			"Find out what it runs with, and remove %s from its driver_info or correct it", binding.AppliedURI, HardwareLabel(hardware), ProfileLabel(profile), keyApplied)
	}
	next.last.Set("/driver_info/"+keyApplied, hardware.ProfileURI)
	next.text = fmt.Sprintf("it has an instance: server profile %s recorded, dynamic allocation on", profile.Name)
	return next, nil
}

// planIdle plans for a node that runs nothing: its profile goes, if it is its own.
func (m *migration) planIdle(next step, node *ironic.Node, binding Binding, hardware *Hardware, profile *Profile) (step, error) {
	declared, err := modeOf(node.DriverInfo[keyDynamic])
	if err != nil {
		return step{}, err
	}
	applied := sameURI(binding.AppliedURI, hardware.ProfileURI)
	if applied && declared == Undeclared && !migrating(node) {
		next.text = fmt.Sprintf("server profile %s was given to it dynamically: dynamic allocation on", profile.Name)
		return next, nil
	}
	next.unproven = !applied && !provenFor(profile, node, hardware)
	if next.unproven {
		if err := m.mayRelease(node, hardware, profile); err != nil {
			return step{}, err
		}
		if binding.AppliedURI != "" { // which is not on the hardware
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

// mayRelease says why a profile that nothing proves to be the node's own is not taken away.
func (m *migration) mayRelease(node *ironic.Node, hardware *Hardware, profile *Profile) error {
	what := fmt.Sprintf("server profile %s on %s", ProfileLabel(profile), HardwareLabel(hardware))
	if migrating(node) {
		what += " (from which an interrupted run was about to take it, and has left the node in maintenance)"
	}
	switch {
	case !m.o.ReleaseUnknown:
		return fmt.Errorf("nothing proves that %s is its own. Ask who uses it; if it was made for this node in advance and nobody needs it, "+
			"run this again with -release-unknown", what)
	case node.Maintenance && node.MaintenanceReason == ReasonInUse:
		return fmt.Errorf("%s is in use by OneView, says its maintenance_reason. If that is wrong, end its maintenance first", what)
	case hardware.PowerState != PowerOff:
		return fmt.Errorf("nothing proves that %s is its own, and the server is not off (%s). If nobody needs it, switch it off first", what, hardware.PowerState)
	}
	return nil
}

// do carries a plan out. Every step leaves the node as one that the next run takes up.
func (m *migration) do(ctx context.Context, node *ironic.Node, next step) error {
	if next.release != "" {
		if err := m.release(ctx, node, next); err != nil {
			return err
		}
	}
	now, err := m.pool.Ironic.Node(ctx, node.UUID) // taking a profile away takes minutes, in which much can happen
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
	_, err = m.pool.Ironic.PatchNode(ctx, node.UUID, patch)
	return err
}

// release takes a profile away from an idle node, which nobody gets meanwhile because it is in maintenance.
func (m *migration) release(ctx context.Context, node *ironic.Node, next step) error {
	if !node.Maintenance {
		if err := m.pool.Ironic.SetMaintenance(ctx, node.UUID, true, ReasonMigrating); err != nil {
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
	if _, err := m.pool.Ironic.PatchNode(ctx, node.UUID, patch); err != nil {
		return err
	}
	return m.pool.Release(ctx, ReleaseOptions{NodeID: node.UUID, ProfileURI: next.release, Limit: m.o.Limit})
}

// discard deletes a profile that nothing proves to be the node's own, as long as the server is off. Ironic is not told that the
// profile is its own: if this ends half way, the next run must find no more proof than this one has.
func (m *migration) discard(ctx context.Context, node *ironic.Node, next step) error {
	now, err := m.pool.Ironic.Node(ctx, node.UUID) // as it is in maintenance
	if err != nil {
		return err
	}
	if ironic.Deployed(now) || now.Reservation != "" || !ironic.Parked(ironic.State(now.ProvisionState)) {
		err = errOutdated
	} else {
		deadline := time.Now().Add(cmp.Or(m.o.Limit, DefaultLimit))
		err = m.pool.remove(ctx, removal{profileURI: next.release, hardwareURI: next.from, deadline: deadline, onlyOff: true})
	}
	if (errors.Is(err, errNotOff) || errors.Is(err, errOutdated)) && !node.Maintenance && now.MaintenanceReason == ReasonMigrating {
		return errors.Join(err, m.pool.Ironic.SetMaintenance(ctx, node.UUID, false, "")) // nothing was begun
	}
	return err
}

// provenFor reports whether a profile on hardware is provably a node's own: it carries our mark, or the name that temporary
// profiles have, which Ironic's former drivers gave theirs, too.
func provenFor(profile *Profile, node *ironic.Node, hardware *Hardware) bool {
	return sameURI(profile.HardwareURI, hardware.URI) && (profile.madeFor(node.UUID) || isTemporary(profile.Name, node.UUID))
}
