package sharing

import (
	"context"
	"fmt"
	"slices"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/decide"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/expect"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/states"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/oneview"
)

// Wish is what the configuration of a server profile asks for. What it omits is as the state says.
type Wish struct {
	Destroy bool // Terraform destroys the resource; the rest does not count then

	Node, Hardware, Template, Name decide.Value[string]
	NamesHardware                  bool // the configuration has server_hardware_uri
}

// Seen is what Terraform has of a server profile, and what Ironic and the appliance were asked for this plan.
type Seen struct {
	Was         *Wish // what the state says; nil: there is no profile yet
	URI         string
	Ownership   Ownership
	Strays      bool   // it does not comply with its template
	Unfinished  bool   // an interrupted run has not applied it, or not recorded it in Ironic
	Deleting    bool   // OneView is deleting it
	Differences string // a sentence about its differences from the template; may be empty

	Asked     []Question
	NoNode    bool         // Ironic has no node that node_id names
	Other     bool         // node_id names another node than that of the profile
	Gone      bool         // the node of the profile does not exist any more
	Node      *ironic.Node // the node that node_id names; nil: not known
	InUse     string       // why the profile cannot be made: OneView uses the hardware
	Displaced bool         // the server has another profile or none, so the removal does nothing
	Label     string       // names the node of the profile
}

// Question is something that a plan depends on, and that only a server knows.
type Question string

// The questions.
const (
	AskSameNode Question = "whether node_id names the node of the profile"
	AskNode     Question = "the node"
	AskUse      Question = "whether OneView uses the hardware"
	AskRemoval  Question = "what the removal of the profile removes"
)

// Plan is what becomes of a server profile.
type Plan struct {
	Steps    []Step
	Replaces []string // the attributes for which the profile is replaced
	Notices  []decide.Notice
	Asks     []Question
	Forecast Forecast
}

// Forecast is what the state says after the apply.
type Forecast struct {
	Wish            Wish // the configuration, with the values of the state that the plan keeps
	Stays, Changes  bool // the computed values stay, or follow from the apply; neither: not known yet
	MayBeAnotherOne bool // after an interrupted removal, the apply creates another profile
}

// Step is a thing that an apply does to a server profile. It can be kept as JSON.
type Step struct {
	Do       Kind        `json:"do"`
	Cost     decide.Cost `json:"cost,omitempty"`
	Renames  bool        `json:"renames,omitempty"`
	Template bool        `json:"template,omitempty"` // applies another template
	Reapply  bool        `json:"reapply,omitempty"`  // applies what has changed in the template
}

// Kind is a kind of step.
type Kind string

// The kinds of steps.
const (
	DoRemove   Kind = "remove"
	DoCreate   Kind = "create"
	DoComplete Kind = "complete" // what an interrupted run has begun
	DoUpdate   Kind = "update"
)

type decision struct {
	Plan
	w    Wish
	was  Wish // the zero value if there is no profile yet
	seen Seen
}

// Decide plans a server profile. It stays on its node, whatever a list says from which node_id is taken, unless that node is gone. Another
// spelling of a URI is no difference. A template is applied only while nothing runs on the node: OneView may switch the server off for it.
func Decide(w Wish, seen Seen) Plan {
	d := &decision{w: w, seen: seen}
	switch {
	case w.Destroy:
		d.was = *seen.Was
		d.remove()
	case seen.Was == nil:
		d.create()
	default:
		d.was = *seen.Was
		d.change()
	}
	d.Forecast.Wish = d.w
	return d.Plan
}

func (d *decision) warn(at decide.Path, summary, detail string) {
	d.Notices = append(d.Notices, decide.Warn(at, summary, detail))
}

func (d *decision) refuse(at, summary, detail string) {
	d.Notices = append(d.Notices, decide.Refuse(decide.At(at), summary, detail))
}

// asked reports whether a question was asked. If not, the plan asks it.
func (d *decision) asked(q Question) bool {
	if !slices.Contains(d.seen.Asked, q) {
		d.Asks = append(d.Asks, q)
		return false
	}
	return true
}

// remove plans to remove the profile. It does not warn if the server has another profile or none, because the removal then does nothing.
func (d *decision) remove() {
	step := Step{Do: DoRemove}
	if d.asked(AskRemoval) && !d.seen.Displaced {
		step.Cost = decide.Restart
		d.warn(nil, "Server profile is removed",
			fmt.Sprintf("Server profile %s of node %s is removed. OneView switches the server off for that. Afterwards every user of "+
				"OneView can take it. The removal fails while the node is deployed or an operation on it is in progress.",
				d.was.Name.V, d.seen.Label))
	}
	d.Steps = append(d.Steps, step)
}

func (d *decision) create() {
	d.Steps = append(d.Steps, Step{Do: DoCreate})
	switch {
	case d.w.Node.Unknown || !d.asked(AskNode):
	case d.seen.NoNode:
		d.noSuchNode()
	case d.seen.Node != nil && d.asked(AskUse) && d.seen.InUse != "":
		d.warn(nil, "Server hardware is in use", fmt.Sprintf("As things are now, the apply will fail: %s.", d.seen.InUse))
	}
}

func (d *decision) noSuchNode() {
	d.refuse("node_id", "No such node", fmt.Sprintf("Ironic has no node %s. Check node_id: it must be the UUID or name of a node.",
		d.w.Node.V))
}

func (d *decision) change() {
	named := d.w.Node
	d.w.Hardware, d.w.Template = keepSpelling(d.w.Hardware, d.was.Hardware), keepSpelling(d.w.Template, d.was.Template)
	if !decide.Same(named, d.was.Node) {
		switch {
		case !d.asked(AskSameNode):
			return
		case d.seen.NoNode:
			d.noSuchNode()
			return
		case d.seen.Other && d.seen.Gone:
			d.Replaces = append(d.Replaces, "node_id")
		case d.seen.Other:
			d.w.Node = d.was.Node
		}
	}
	if d.w.NamesHardware && !decide.Same(d.w.Hardware, d.was.Hardware) {
		d.Replaces = append(d.Replaces, "server_hardware_uri")
	}
	if len(d.Replaces) > 0 {
		d.w.Node = named
		d.remove()
		d.create()
		return
	}
	if decide.Same(d.w.Node, d.was.Node) && !decide.Same(named, d.was.Node) && !named.Unknown {
		d.warn(decide.At("node_id"), "Server profile stays on its node",
			fmt.Sprintf("This profile is on node %s, and node_id says %q now. Without -replace, the plan keeps the node. To move the "+
				"profile on purpose, use terraform apply -replace, which switches the server off. Otherwise set node_id to %q.",
				d.was.Node.V, named.V, d.was.Node.V))
	}
	if d.asked(AskNode) {
		d.update()
	}
}

// keepSpelling returns the present value if the planned one is a URI that means the same, or is not known yet, else the planned one. The
// plan that Terraform makes during the apply compares what became known.
func keepSpelling(planned, present decide.Value[string]) decide.Value[string] {
	if present.Set && (planned.Unknown || planned.Set && oneview.SameURI(planned.V, present.V)) {
		return present
	}
	return planned
}

func (d *decision) update() {
	seen, node := d.seen, d.seen.Node
	step := Step{Do: DoUpdate, Renames: !decide.Same(d.w.Name, d.was.Name), Template: !decide.Same(d.w.Template, d.was.Template)}
	if node == nil { // the apply says why
		if step.Renames || step.Template {
			d.Steps = append(d.Steps, step)
		}
		return
	}
	parked, label := states.Parked(ironic.State(node.ProvisionState)), ironic.NodeLabel(node)
	step.Reapply = seen.Strays && parked
	if seen.Strays && !parked && !step.Template && !seen.Unfinished && !seen.Deleting && seen.Ownership == UsedByIronic {
		d.Notices = append(d.Notices, NotApplied(node, seen.Differences)...)
	}
	switch {
	case seen.Deleting && !parked: // a new profile would switch the server off
		d.warn(nil, "Server profile is being deleted",
			fmt.Sprintf("OneView is deleting the server profile of node %s. The apply leaves it, because the node may run a deployment "+
				"(state %q). When the profile is gone, a plan says how to get another one.", label, node.ProvisionState))
		d.Forecast.Stays = true
		return
	case seen.Deleting:
		d.warn(nil, "Deleted server profile is replaced", fmt.Sprintf("OneView is deleting the server profile of node %s. The apply "+
			"waits for the end of that, and gives the node another profile.", label))
		step, d.Forecast.MayBeAnotherOne = Step{Do: DoComplete, Cost: decide.Restart}, true
	case seen.Unfinished:
		d.warn(nil, "Unfinished server profile is completed",
			fmt.Sprintf("An interrupted run has not finished the server profile of node %s. The apply completes it.", label))
		step, d.Forecast.MayBeAnotherOne = Step{Do: DoComplete, Cost: decide.Restart}, true
	case seen.Ownership == UsedByOneView: // another user has the hardware, and the refresh has reported it
		d.Forecast.Stays = true
		return
	case step.Template && !parked:
		d.refuse("server_profile_template_uri", "Template cannot be changed now", fmt.Sprintf("Node %s is in state %q, and applying "+
			"another template switches the server off. Destroy the metal_deployment of the node first.", label, node.ProvisionState))
		return
	case step.Template || step.Reapply:
		d.warn(nil, "Server profile template is applied", fmt.Sprintf("The server profile of node %s is updated from its template.%s "+
			"OneView switches the server off if the change requires that.", label, seen.Differences))
		step.Cost = decide.Restart
	case !step.Renames:
		d.Forecast.Stays = true
		return
	}
	d.Steps, d.Forecast.Changes = append(d.Steps, step), true
}

// NotApplied warns that the apply does not apply the template, because the node may run a deployment.
func NotApplied(node *ironic.Node, differences string) []decide.Notice {
	return []decide.Notice{decide.Warn(nil, "Server profile template is not applied",
		fmt.Sprintf("The server profile of node %s is not updated from its template while the node may run a deployment: it is in state "+
			"%q.%s To apply the template, destroy the metal_deployment of the node.", ironic.NodeLabel(node),
			node.ProvisionState, differences))}
}

// MayRun reports whether a node may run a deployment, so that its server must not be switched off.
func MayRun(node *ironic.Node) bool { return !states.Parked(ironic.State(node.ProvisionState)) }

// ProfileGone warns of a profile that another user has deleted. node is nil if it is not known.
func ProfileGone(profileURI, nodeID string, node *ironic.Node) decide.Notice {
	label, runs := nodeID, ""
	if node != nil {
		label = ironic.NodeLabel(node)
		if MayRun(node) {
			runs = fmt.Sprintf(" The node may run a deployment (state %q), and a new profile requires switching the server off. Unless "+
				"this plan replaces its metal_deployment, the apply fails. To deploy the node again with a new profile, use terraform "+
				"apply -replace=ADDRESS of the metal_deployment: the node is undeployed and cleaned first, with a temporary server "+
				"profile.", node.ProvisionState)
		}
	}
	return decide.Warn(nil, "Server profile is gone", fmt.Sprintf("Server profile %s of node %s does not exist in OneView any more.%s",
		profileURI, label, runs))
}

// ProfileWithoutNode warns of a profile whose node Ironic does not have, or does not show to a project; "" is a user of the system.
func ProfileWithoutNode(nodeID, project string, profile *oneview.Profile) decide.Notice {
	why, then := "does not exist in Ironic any more", "Destroy this resource to remove the profile."
	if project != "" {
		why, then = "does not exist in Ironic, or is not visible to project "+project, "A user of the system can find out."
	}
	return decide.Warn(nil, "Server profile without a node", fmt.Sprintf("Node %s %s, but its server profile %s exists. %s", nodeID, why,
		oneview.ProfileLabel(profile), then))
}

// HardwareTaken warns of a node whose server another user of OneView has.
func HardwareTaken(node *ironic.Node, h Holding) decide.Notice {
	what := "one that the provider cannot read"
	if h.Profile != nil {
		what = oneview.ProfileLabel(h.Profile)
	}
	return decide.Warn(nil, "Server hardware is used by OneView",
		fmt.Sprintf("Server hardware %s of node %s has a server profile that is not Ironic's: %s. The provider does not change this "+
			"server. Destroy this resource, or ask the user of OneView to remove the other profile.", oneview.HardwareLabel(h.Hardware),
			ironic.NodeLabel(node), what))
}

// ProfileLeft says that a deletion has left a profile, and why.
func ProfileLeft(profile *oneview.Profile, node, why string) decide.Notice {
	return decide.Warn(nil, "Server profile is not removed", fmt.Sprintf("Server profile %s of node %s was not removed: %s.",
		oneview.ProfileLabel(profile), node, why))
}

// Look decides, asks Ironic and the appliance what that depends on, and decides again. site is nil if Ironic cannot be asked, pool if
// either cannot. failed says why an answer is missing; doing names the question.
func Look(ctx context.Context, site *machine.Site, pool *Pool, w Wish, seen Seen) (plan Plan, doing string, failed error) {
	for plan = Decide(w, seen); len(plan.Asks) > 0 && failed == nil; plan = Decide(w, seen) {
		for _, q := range plan.Asks {
			seen.Asked = append(seen.Asked, q)
			if doing, failed = seen.ask(ctx, site, pool, plan.Forecast.Wish, q); failed != nil {
				break
			}
		}
	}
	return plan, doing, failed
}

func (s *Seen) ask(ctx context.Context, site *machine.Site, pool *Pool, w Wish, q Question) (doing string, err error) {
	switch q {
	case AskSameNode:
		return "find out whether node " + w.Node.V + " is node " + s.Was.Node.V, s.askSameNode(ctx, site, w)
	case AskNode:
		return "plan the server profile of node " + w.Node.V, s.askNode(ctx, pool, w)
	case AskUse:
		if pool != nil {
			s.InUse = InUse(pool.CheckUsable(ctx, s.Node)) // the apply reports other errors
		}
	case AskRemoval:
		s.askRemoval(ctx, pool)
	}
	return "", nil
}

// askSameNode finds out whether a changed node_id, a name or UUID, names another node than the present one, and whether that is gone, or
// goes with its host.
func (s *Seen) askSameNode(ctx context.Context, site *machine.Site, w Wish) error {
	if !s.Was.Node.Set || site == nil {
		s.Other, s.Gone = true, !s.Was.Node.Set
		return nil
	}
	if w.Node.Unknown {
		present, err := site.Ironic.NodeForRefresh(ctx, s.Was.Node.V)
		s.Other, s.Gone = true, api.IsNotFound(err) || err == nil && expect.ReplacesHost(site, present)
		return nil
	}
	wanted, err := site.Ironic.NodeForRefresh(ctx, w.Node.V)
	if err != nil {
		if s.NoNode = api.IsNotFound(err); s.NoNode {
			return nil
		}
		return err
	}
	present, err := site.Ironic.NodeForRefresh(ctx, s.Was.Node.V)
	s.Gone = api.IsNotFound(err)
	if s.Other = s.Gone || err == nil && wanted.UUID != present.UUID; s.Gone {
		return nil
	}
	return err
}

// askNode reads the node. A new profile is planned without it if Ironic does not answer: the apply reports that. The plan of a profile that
// exists fails, because Terraform plans again during the apply, and that plan must not differ.
func (s *Seen) askNode(ctx context.Context, pool *Pool, w Wish) error {
	if pool == nil || w.Node.Unknown {
		return nil
	}
	node, err := pool.Site.Ironic.NodeForRefresh(ctx, w.Node.V)
	switch {
	case err == nil:
		s.Node = node
	case s.Was == nil:
		s.NoNode = api.IsNotFound(err)
	case !api.IsNotFound(err):
		return err
	}
	return nil
}

// askRemoval asks the appliance, because Terraform has not refreshed a resource that is not in the configuration any more.
func (s *Seen) askRemoval(ctx context.Context, pool *Pool) {
	s.Label = s.Was.Node.V
	if pool == nil {
		return
	}
	if node, err := pool.Site.Ironic.NodeForRefresh(ctx, s.Label); err == nil {
		s.Label = ironic.NodeLabel(node)
		h, err := pool.Inspect(ctx, node)
		s.Displaced = err == nil && (h.Profile == nil || !oneview.SameURI(h.Profile.URI, s.URI))
	}
}
