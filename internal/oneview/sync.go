package oneview

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/gophercloud/gophercloud/v2/openstack/baremetal/v1/nodes"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
)

// Defaults of SyncOptions.
const (
	DefaultParallel    = 8
	DefaultBudget      = 5 * time.Minute
	DefaultLeftoverAge = 2 * time.Hour
)

// shortestQueue is how long a node that is ready waits for room in the provisioning limit, even if the budget is used up.
const shortestQueue = 30 * time.Second

// SyncOptions says how a pass works.
type SyncOptions struct {
	DryRun   bool // tell what would be done, and do nothing
	Parallel int  // nodes that are worked on at once; zero: DefaultParallel
	// Budget is how long after its beginning a pass begins to give nodes back, and waits for room in the provisioning
	// limit: what is left waits for the next pass, so that taken nodes are not seen too late. Zero: DefaultBudget.
	Budget time.Duration
	// LeftoverAge is the age at which a temporary profile is one that nobody uses any more, where the state of its node does
	// not tell. Zero: DefaultLeftoverAge.
	LeftoverAge time.Duration
	Limit       time.Duration // for one profile to be applied or removed; zero: DefaultLimit
	Report      func(Finding) // is called with one finding at a time; may be nil
	Progress    Progress      // may be nil
}

// SyncSummary is what a pass saw and did.
type SyncSummary struct {
	Nodes        int // whose hardware was looked at
	InUse        int // of these, in use by OneView
	PreAllocated int // left alone: they have their profiles all the time, because dynamic_allocation is not true
	Tally
}

// Sync is one pass of the three periodic tasks of dynamic allocation: available nodes whose hardware OneView users have
// taken, and nodes whose cleaning failed because of that, are put into maintenance and made manageable; nodes whose
// hardware was freed are made available again, which cleans them. What an interrupted pass has begun is finished. Temporary
// profiles that nobody uses any more are removed.
//
// A node that cannot be worked on is a Finding, and does not stop the pass. An error is one of the whole pass: Ironic or the
// appliance could not be asked, or ctx was done. The pass does not wait for the cleaning that follows a return.
func (p *Pool) Sync(ctx context.Context, o SyncOptions) (SyncSummary, error) {
	o.Parallel = cmp.Or(o.Parallel, DefaultParallel)
	o.LeftoverAge = cmp.Or(o.LeftoverAge, DefaultLeftoverAge)
	s := &syncPass{pool: p, o: o, findings: &findings{report: o.Report, progress: o.Progress}, until: time.Now().Add(cmp.Or(o.Budget, DefaultBudget))}
	err := s.run(ctx)
	s.summary.Tally = s.findings.tally
	return s.summary, cmp.Or(err, ctx.Err())
}

// syncPass is the memory of one pass.
type syncPass struct {
	pool     *Pool
	o        SyncOptions
	findings *findings
	until    time.Time // after that nothing is begun that takes long
	summary  SyncSummary

	listed map[string]*candidate // by UUID: nodes with hardware in OneView, in the states that concern a pass
	temps  map[string]*Profile   // by normal URI: all temporary profiles
}

func (s *syncPass) run(ctx context.Context) error {
	if err := s.list(ctx); err != nil {
		return err
	}
	leftovers, err := s.leftovers(ctx)
	if err != nil {
		return err
	}
	s.findings.each(ctx, "removing temporary server profiles", s.o.Parallel, leftovers, s.removeLeftover)
	for _, c := range leftovers {
		delete(s.listed, c.node.UUID) // what was read of it is out of date; the next pass looks again
	}
	if err := s.look(ctx); err != nil {
		return err
	}
	s.findings.each(ctx, "withdrawing nodes that OneView uses", s.o.Parallel, s.todo(Withdraw), s.withdraw)
	s.findings.each(ctx, "returning nodes that were freed", s.o.Parallel, s.todo(Return), s.giveBack)
	s.tidy(ctx)
	return nil
}

// syncFields is what a pass needs to know of nodes.
var syncFields = []string{
	"uuid", "name", "provision_state", "provision_updated_at", "maintenance", "maintenance_reason", "fault", "reservation", "instance_uuid",
	"automated_clean", "retired", "driver_info", "properties", "extra",
}

// list reads the nodes that concern the pass.
func (s *syncPass) list(ctx context.Context) error {
	s.listed = map[string]*candidate{}
	for _, state := range passStates() {
		if err := s.listState(ctx, state); err != nil {
			return err
		}
	}
	return nil
}

func (s *syncPass) listState(ctx context.Context, state ironic.State) error {
	found, err := s.pool.Ironic.ListNodeFields(ctx, ironic.NodeFilter{ProvisionState: string(state)}, syncFields)
	if err != nil {
		return fmt.Errorf("list nodes in state %q: %w", state, err)
	}
	for i := range found {
		node := &found[i]
		binding, err := BindingOf(node)
		switch {
		case err != nil:
			s.findings.fail(ctx, node, "read what hardware it is", err)
		case binding.HardwareURI == "":
		case !binding.Shared():
			s.summary.PreAllocated++
		default:
			s.listed[node.UUID] = &candidate{node: node, binding: binding, action: Leave}
		}
	}
	return nil
}

// look decides about the nodes of which it matters who uses their hardware. All hardware is read in one list.
func (s *syncPass) look(ctx context.Context) error {
	var concerned []*candidate
	for _, c := range s.listed {
		if concerns(ironic.State(c.node.ProvisionState), maintenanceOf(c.node)) {
			concerned = append(concerned, c)
		}
	}
	if len(concerned) == 0 {
		return nil
	}
	hardware, err := s.pool.hardwareByURI(ctx)
	if err != nil {
		return err
	}
	s.summary.Nodes = len(concerned)
	s.findings.each(ctx, "looking at server hardware", s.o.Parallel, concerned, func(ctx context.Context, c *candidate) { s.decide(ctx, c, hardware) })
	for _, c := range concerned {
		if c.hardware != nil && s.owner(c) == UsedByOneView {
			s.summary.InUse++
		}
	}
	return nil
}

// decide says what is to be done about a node. Hardware that is not in the list is asked for singly, if only to hear why.
func (s *syncPass) decide(ctx context.Context, c *candidate, listed map[string]*Hardware) {
	if c.hardware = listed[normalURI(c.binding.HardwareURI)]; c.hardware == nil {
		hardware, err := s.pool.OneView.Hardware(ctx, c.binding.HardwareURI)
		if err != nil {
			s.findings.fail(ctx, c.node, "look at its hardware; nothing was done", err)
			return
		}
		c.hardware = hardware
	}
	c.action = Decide(s.owner(c), ironic.State(c.node.ProvisionState), maintenanceOf(c.node))
	if c.action != Leave && c.node.Reservation != "" {
		s.findings.tell(c.node, Skipped, "Ironic is at work on it")
		c.action = Leave
	}
}

// owner says who uses the hardware of a node. A temporary profile that was made for the node is Ironic's, even if the node
// does not say so because a run died before it could tell Ironic.
func (s *syncPass) owner(c *candidate) Ownership {
	temporary := s.temps[normalURI(c.hardware.ProfileURI)]
	if temporary != nil && temporary.madeFor(c.node.UUID) && sameURI(temporary.HardwareURI, c.hardware.URI) {
		return UsedByIronic
	}
	return Owner(c.hardware.ProfileURI, c.binding.AppliedURI)
}

// todo are the nodes to which something is to be done, in the order of their names.
func (s *syncPass) todo(action Action) []*candidate {
	var all []*candidate
	for _, c := range s.listed {
		if c.action == action {
			all = append(all, c)
		}
	}
	slices.SortFunc(all, func(a, b *candidate) int {
		return cmp.Or(cmp.Compare(a.node.Name, b.node.Name), cmp.Compare(a.node.UUID, b.node.UUID))
	})
	return all
}

// confirm reads a node and its hardware again, right before something is done: what was decided may be out of date. It
// returns errOutdated unless the same is still to be done.
func (s *syncPass) confirm(ctx context.Context, c *candidate) (*ironic.Node, Holding, error) {
	node, err := s.pool.Ironic.Node(ctx, c.node.UUID)
	if err != nil {
		return nil, Holding{}, err
	}
	binding, err := BindingOf(node)
	if err != nil {
		return nil, Holding{}, err
	}
	holding, err := s.pool.holding(ctx, node, binding)
	if err != nil {
		return nil, Holding{}, err
	}
	owner := holding.Ownership
	if holding.ours() { // even if a run was interrupted, or is about to tell Ironic
		owner = UsedByIronic
	}
	if node.Reservation != "" || Decide(owner, ironic.State(node.ProvisionState), maintenanceOf(node)) != c.action {
		return nil, Holding{}, errOutdated
	}
	return node, holding, nil
}

// withdraw takes a node from Ironic's users: maintenance before manage, so that nobody makes it available in between.
func (s *syncPass) withdraw(ctx context.Context, c *candidate) {
	node, holding, err := s.confirm(ctx, c)
	if err != nil {
		s.findings.fail(ctx, c.node, "take it out of service", err)
		return
	}
	mark, manage := maintenanceOf(node) != MaintenanceOurs, ironic.State(node.ProvisionState) != nodes.Manageable
	if !s.o.DryRun && mark {
		err = s.pool.Ironic.SetMaintenance(ctx, node.UUID, true, ReasonInUse)
	}
	if err == nil && !s.o.DryRun && manage {
		err = s.pool.Ironic.Manage(ctx, node)
	}
	if err != nil {
		s.findings.fail(ctx, node, "take it out of service", err)
		return
	}
	text := "finished what an interrupted pass has begun: manage"
	if mark {
		text = inUse(holding) + ": maintenance on"
	}
	if mark && manage {
		text += ", manage"
	}
	s.findings.tell(node, Changed, text)
	s.warnOfCleaning(node, "when it is freed, its disks will not be erased")
}

// inUse says whose hardware it is.
func inUse(h Holding) string {
	if h.Profile == nil {
		return fmt.Sprintf("%s is in use by OneView", h.Hardware.Name)
	}
	return fmt.Sprintf("%s is in use by OneView (server profile %s)", h.Hardware.Name, h.Profile.Name)
}

// warnOfCleaning warns that OneView does not erase the disks of a server that is given back, and Ironic will not either.
func (s *syncPass) warnOfCleaning(node *ironic.Node, consequence string) {
	if node.AutomatedClean != nil && !*node.AutomatedClean {
		s.findings.tell(node, Warned, "automated cleaning is off for it (automated_clean = false): "+consequence+". Whoever had the server has to erase them")
	}
}

// giveBack makes a node available again: a temporary profile for the cleaning, maintenance off, provide. Maintenance goes
// off only when the provisioning limit has room, right before provide, and leaves a mark that says so.
func (s *syncPass) giveBack(ctx context.Context, c *candidate) {
	if time.Now().After(s.until) {
		s.findings.tell(c.node, Skipped, "its turn comes in the next pass")
		return
	}
	node, holding, err := s.confirm(ctx, c)
	if err != nil {
		s.findings.fail(ctx, c.node, "give it back", err)
		return
	}
	if node.Retired {
		s.findings.tell(node, Skipped, "it is retired, so it is not made available")
		return
	}
	if lacksTemplate(node, holding.Ownership, c.binding) {
		s.findings.fail(ctx, node, "give it back", &NoTemplateError{Node: ironic.NodeLabel(node), ToClean: true})
		return
	}
	text := s.describeReturn(node, holding)
	if !s.o.DryRun {
		err = s.provide(ctx, c, node)
	}
	if err != nil {
		s.findings.fail(ctx, node, "give it back", err)
		return
	}
	s.findings.tell(node, Changed, text)
	s.warnOfCleaning(node, "its disks are not erased")
}

// lacksTemplate reports whether a node is to be cleaned, and has no profile to be cleaned with, nor a template to make one from.
func lacksTemplate(node *ironic.Node, owner Ownership, b Binding) bool {
	return cleans(node) && owner == Free && b.TemplateURI == ""
}

func (s *syncPass) describeReturn(node *ironic.Node, holding Holding) string {
	if maintenanceOf(node) == MaintenanceLifted {
		return "finished what an interrupted pass has begun: provide"
	}
	text := holding.Hardware.Name + " is free again: "
	if cleans(node) && holding.Ownership == Free {
		text += "temporary server profile, "
	}
	return text + "maintenance off, provide"
}

// provide gives the hardware of a node a profile to be cleaned with, and sends provide. The profile is removed by the first
// pass that sees the cleaning ended.
func (s *syncPass) provide(ctx context.Context, c *candidate, node *ironic.Node) error {
	if cleans(node) {
		if _, err := s.pool.Temporary(ctx, node, Cleaning, s.o.Limit); err != nil {
			return err
		}
	}
	return s.pool.Ironic.Provide(ctx, node, max(time.Until(s.until), shortestQueue), func(ctx context.Context) error {
		now, holding, err := s.confirm(ctx, c)
		if err == nil && cleans(now) && holding.Ownership == Free {
			err = errOutdated // its profile is gone
		}
		if err != nil || maintenanceOf(now) == MaintenanceLifted {
			return err
		}
		var patch ironic.Patch
		patch.Set("/maintenance", false)
		patch.Set("/extra/"+keyReturning, returningMark(now))
		_, err = s.pool.Ironic.PatchNode(ctx, now.UUID, patch)
		return err
	})
}

// tidy takes away the marks of earlier passes that mean nothing any more. That it cannot is no matter, for they do no harm.
func (s *syncPass) tidy(ctx context.Context) {
	for _, c := range s.listed {
		marked := c.node.Extra[keyReturning] != nil && maintenanceOf(c.node) != MaintenanceLifted
		if !marked || s.o.DryRun || c.node.Reservation != "" || c.action != Leave || ctx.Err() != nil {
			continue
		}
		var patch ironic.Patch
		patch.Remove("/extra/" + keyReturning)
		_, _ = s.pool.Ironic.PatchNode(ctx, c.node.UUID, patch)
	}
}
