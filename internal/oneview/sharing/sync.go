package sharing

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/gophercloud/gophercloud/v2/openstack/baremetal/v1/nodes"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/oneview"
)

// Defaults of SyncOptions.
const (
	DefaultParallel    = 8
	DefaultBudget      = 5 * time.Minute
	DefaultLeftoverAge = 2 * time.Hour
)

// shortestQueue is the shortest time that a node waits for a slot, even if the budget is used up.
const shortestQueue = 30 * time.Second

// SyncOptions are the options of a pass.
type SyncOptions struct {
	DryRun   bool // report what would be done, and change nothing
	Parallel int  // number of nodes at once; zero: DefaultParallel
	// Budget is the time after the start of a pass in which it starts to return nodes to service and waits for slots. The next pass
	// handles the remaining nodes, so that it notices taken hardware in time. Zero: DefaultBudget.
	Budget time.Duration
	// LeftoverAge is the age from which a temporary profile counts as unused, if the state of its node does not say whether it is.
	// Zero: DefaultLeftoverAge.
	LeftoverAge time.Duration
	Limit       time.Duration // time-out of applying or removing one profile; zero: DefaultLimit
	Report      func(Finding) // is called with one finding at a time; may be nil
	Progress    Progress      // may be nil
}

// SyncSummary counts the results of a pass.
type SyncSummary struct {
	Nodes        int // whose hardware was checked
	InUse        int // of these, in use by OneView
	PreAllocated int // skipped, because dynamic_allocation is not true
	Tally
}

// Sync makes one pass of the three periodic tasks of dynamic allocation. It takes nodes out of service (maintenance, then manageable)
// if OneView users have taken their hardware while they were available, or if their cleaning has failed for that reason. It makes
// nodes available again, which cleans them, if their hardware was freed. It reports nodes whose deployment has failed and whose
// hardware OneView users have. It removes unused temporary profiles, and finishes the work
// of an interrupted pass.
//
// Sync reports a Finding for a node that fails, and continues. It returns an error if Ironic or the appliance does not answer, or if
// ctx ends. It does not wait for the cleaning of a returned node.
func (p *Pool) Sync(ctx context.Context, o SyncOptions) (SyncSummary, error) {
	o.Parallel = cmp.Or(o.Parallel, DefaultParallel)
	o.LeftoverAge = cmp.Or(o.LeftoverAge, DefaultLeftoverAge)
	s := &syncPass{
		pool: p, o: o, findings: &findings{report: o.Report, progress: o.Progress},
		until: time.Now().Add(cmp.Or(o.Budget, DefaultBudget)),
	}
	err := s.run(ctx)
	s.summary.Tally = s.findings.tally
	return s.summary, cmp.Or(err, ctx.Err())
}

type syncPass struct {
	pool     *Pool
	o        SyncOptions
	findings *findings
	until    time.Time // the pass starts no long operation after it
	summary  SyncSummary

	listed map[string]*candidate       // by UUID: nodes with hardware in OneView, in the states that concern a pass
	temps  map[string]*oneview.Profile // by normal URI: all temporary profiles
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
		delete(s.listed, c.node.UUID) // the node has changed; the next pass reads it again
	}
	if err := s.assessAll(ctx); err != nil {
		return err
	}
	s.findings.each(ctx, "taking nodes out of service", s.o.Parallel, s.todo(TakeOut), s.takeOut)
	s.findings.each(ctx, "returning nodes to service", s.o.Parallel, s.todo(Return), s.returnNode)
	s.findings.each(ctx, "reporting conflicts", s.o.Parallel, s.todo(Report), s.reportConflict)
	s.tidy(ctx)
	return nil
}

// syncFields are the fields of a node that a pass needs.
var syncFields = []string{
	"uuid", "name", "provision_state", "provision_updated_at", "maintenance", "maintenance_reason", "fault", "reservation", "instance_uuid",
	"automated_clean", "retired", "driver_info", "properties", "extra",
}

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
	found, err := s.pool.Site.Ironic.ListNodeFields(ctx, ironic.NodeFilter{ProvisionState: string(state)}, syncFields)
	if err != nil {
		return fmt.Errorf("list nodes in state %q: %w", state, err)
	}
	for i := range found {
		node := &found[i]
		binding, err := BindingOf(node)
		switch {
		case err != nil:
			s.findings.fail(ctx, node, "read its server hardware from driver_info", err)
		case binding.HardwareURI == "":
		case !binding.Shared():
			s.summary.PreAllocated++
		default:
			s.listed[node.UUID] = &candidate{node: node, binding: binding, action: Leave}
		}
	}
	return nil
}

// assessAll decides about the nodes whose action depends on the user of their hardware. It reads all hardware in one list.
func (s *syncPass) assessAll(ctx context.Context) error {
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
	s.findings.each(ctx, "checking server hardware", s.o.Parallel, concerned, func(ctx context.Context, c *candidate) {
		s.assess(ctx, c, hardware)
	})
	for _, c := range concerned {
		if c.hardware != nil && s.owner(c) == UsedByOneView {
			s.summary.InUse++
		}
	}
	return nil
}

// assess decides the action for a node. It requests hardware that is not in the list, to find out why.
func (s *syncPass) assess(ctx context.Context, c *candidate, listed map[string]*oneview.Hardware) {
	if c.hardware = listed[oneview.URIKey(c.binding.HardwareURI)]; c.hardware == nil {
		hardware, err := s.pool.OneView.Hardware(ctx, c.binding.HardwareURI)
		if err != nil {
			s.findings.fail(ctx, c.node, "read its hardware; nothing was done", err)
			return
		}
		c.hardware = hardware
	}
	c.action = actionFor(s.owner(c), ironic.State(c.node.ProvisionState), maintenanceOf(c.node))
	if c.action != Leave && c.node.Reservation != "" {
		s.findings.tell(c.node, Skipped, "Ironic has an operation in progress on it")
		c.action = Leave
	}
}

// owner returns who uses the hardware of a node. A temporary profile that was made for the node counts as Ironic's, even if a killed
// run has not written it into driver_info.
func (s *syncPass) owner(c *candidate) Ownership {
	temporary := s.temps[oneview.URIKey(c.hardware.ProfileURI)]
	if temporary != nil && madeFor(temporary, c.node.UUID) && oneview.SameURI(temporary.HardwareURI, c.hardware.URI) {
		return UsedByIronic
	}
	return Owner(c.hardware.ProfileURI, c.binding.AppliedURI)
}

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

// confirm reads a node and its hardware again, right before the action. It returns errOutdated if another action is due now.
func (s *syncPass) confirm(ctx context.Context, c *candidate) (*ironic.Node, Holding, error) {
	node, err := s.pool.Site.Ironic.Node(ctx, c.node.UUID)
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
	if holding.ours() { // also if driver_info does not name the profile yet
		owner = UsedByIronic
	}
	if node.Reservation != "" || actionFor(owner, ironic.State(node.ProvisionState), maintenanceOf(node)) != c.action {
		return nil, Holding{}, errOutdated
	}
	return node, holding, nil
}

// takeOut takes a node out of service. It sets maintenance before manage, so that Ironic does not allocate the node in between.
func (s *syncPass) takeOut(ctx context.Context, c *candidate) {
	node, holding, err := s.confirm(ctx, c)
	if err != nil {
		s.findings.fail(ctx, c.node, "take it out of service", err)
		return
	}
	mark, manage := maintenanceOf(node) != maintenanceOurs, ironic.State(node.ProvisionState) != nodes.Manageable
	if !s.o.DryRun {
		_, err = s.pool.Site.PatchNode(ctx, node.UUID, MarkOut(s.pool.Site.Ironic.ServerNow()))
	}
	if err == nil && !s.o.DryRun && mark {
		err = s.pool.Site.Ironic.SetMaintenance(ctx, node.UUID, true, ReasonInUse)
	}
	if err == nil && !s.o.DryRun && manage {
		err = s.pool.Site.Manage(ctx, node)
	}
	if err != nil {
		s.findings.fail(ctx, node, "take it out of service", err)
		return
	}
	text := "finished the work of an interrupted pass: manage"
	if mark {
		text = inUse(holding) + ": maintenance on"
	}
	if mark && manage {
		text += ", manage"
	}
	s.findings.tell(node, Changed, text)
	s.warnOfCleaning(node, "when it is freed, its disks will not be erased")
}

func inUse(h Holding) string {
	if h.Profile == nil {
		return fmt.Sprintf("%s is in use by OneView", h.Hardware.Name)
	}
	return fmt.Sprintf("%s is in use by OneView (server profile %s)", h.Hardware.Name, h.Profile.Name)
}

// reportConflict reports a node whose deployment has failed and whose hardware a OneView user has, or whose maintenance has the reason of
// a pass, which no pass has set.
func (s *syncPass) reportConflict(_ context.Context, c *candidate) {
	if maintenanceOf(c.node) == maintenanceClaimed {
		name := ironic.NodeArgument(c.node)
		s.findings.tell(c.node, Warned, fmt.Sprintf("its server is free, and driver_info.%s does not say that a pass has taken the node "+
			"out of service: another client may have written the reason of its maintenance. So the node is neither returned nor cleaned. "+
			"If it may be cleaned, run: metal maintenance off %s, then metal provide %s", keyOut, name, name))
		return
	}
	s.findings.tell(c.node, Warned, inUse(Holding{Hardware: c.hardware})+", and the deployment of the node has failed. Do not undeploy "+
		"the node in Ironic, which does not know OneView: it would switch the server off, boot it and erase its disks. Wait until the "+
		"user frees the server. Then destroy the metal_deployment of the node with Terraform, which cleans the server with a temporary "+
		"server profile; if the state has no metal_deployment of the node, import it first")
}

// warnOfCleaning warns that neither OneView nor Ironic erases the disks of a freed server.
func (s *syncPass) warnOfCleaning(node *ironic.Node, consequence string) {
	if node.AutomatedClean != nil && !*node.AutomatedClean {
		s.findings.tell(node, Warned, "automated cleaning is off for it (automated_clean = false): "+consequence+
			". The former user of the server must erase the disks")
	}
}

// returnNode returns a node to service: temporary profile for the cleaning, maintenance off, provide. It ends the maintenance only when
// the node has a slot, right before provide, and leaves a mark that says so.
func (s *syncPass) returnNode(ctx context.Context, c *candidate) {
	if time.Now().After(s.until) {
		s.findings.tell(c.node, Skipped, "the next pass returns it to service")
		return
	}
	node, holding, err := s.confirm(ctx, c)
	if err != nil {
		s.findings.fail(ctx, c.node, "return it to service", err)
		return
	}
	if node.Retired {
		s.findings.tell(node, Skipped, "it is retired, so it is not made available")
		return
	}
	if lacksTemplate(node, holding.Ownership, c.binding) {
		s.findings.fail(ctx, node, "return it to service", noTemplate(node, true))
		return
	}
	text := s.describeReturn(node, holding)
	if !s.o.DryRun {
		err = s.provide(ctx, c, node)
	}
	if err != nil {
		s.findings.fail(ctx, node, "return it to service", err)
		return
	}
	s.findings.tell(node, Changed, text)
	s.warnOfCleaning(node, "its disks are not erased")
}

func (s *syncPass) describeReturn(node *ironic.Node, holding Holding) string {
	if maintenanceOf(node) == maintenanceLifted {
		return "finished the work of an interrupted pass: provide"
	}
	text := holding.Hardware.Name + " is free again: "
	if cleansAutomatically(node) && holding.Ownership == Free {
		text += "temporary server profile, "
	}
	return text + "maintenance off, provide"
}

// provide gives the hardware of a node a profile for the cleaning, and sends provide. The first pass after the cleaning removes the
// profile.
func (s *syncPass) provide(ctx context.Context, c *candidate, node *ironic.Node) error {
	if cleansAutomatically(node) {
		if _, err := s.pool.Temporary(ctx, node, Cleaning, s.o.Limit); err != nil {
			return err
		}
	}
	return s.pool.Site.Provide(ctx, node, max(time.Until(s.until), shortestQueue), returnGuard{s, c})
}

// returnGuard is the guard of a node that a pass returns to service. It keeps the node in maintenance until it has a slot.
type returnGuard struct {
	s *syncPass
	c *candidate
}

// Check confirms the decision of the pass right before the verb, and takes the node out of maintenance.
func (g returnGuard) Check(ctx context.Context, step machine.Step) error {
	if step.Stage != machine.BeforeVerb {
		return nil
	}
	now, holding, err := g.s.confirm(ctx, g.c)
	if err == nil && cleansAutomatically(now) && holding.Ownership == Free {
		err = errOutdated // its profile is gone
	}
	if err != nil || maintenanceOf(now) == maintenanceLifted {
		return err
	}
	var patch ironic.Patch
	patch.Set("/maintenance", false)
	patch.Set("/driver_info/"+keyOut, returningMark(now))
	_, err = g.s.pool.Site.PatchNode(ctx, now.UUID, patch)
	return err
}

// tidy removes marks of earlier passes that do not apply any more. It ignores errors, because such marks are harmless.
func (s *syncPass) tidy(ctx context.Context) {
	for _, c := range s.listed {
		marked := c.node.DriverInfo[keyOut] != nil && !slices.Contains(of(maintenanceLifted, maintenanceOurs), maintenanceOf(c.node))
		if !marked || s.o.DryRun || c.node.Reservation != "" || c.action != Leave || ctx.Err() != nil {
			continue
		}
		var patch ironic.Patch
		patch.Remove("/driver_info/" + keyOut)
		_, _ = s.pool.Site.PatchNode(ctx, c.node.UUID, patch)
	}
}
