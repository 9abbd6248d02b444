package deploy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/allocate"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/decide"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/disks"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/expect"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/failure"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/notes"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/states"
)

// Look finds in Ironic what stands in the way of a plan. Where Ironic does not answer, it finds nothing: the apply reports that.
type Look struct {
	Site *machine.Site // nil: the plan does not know where Ironic is
	Wish Wish          // Forecast.Wish of the plan, if there is one
	Seen Seen
	Plan Plan

	notices []decide.Notice
	kept    Disks // those of a machine that is cleaned
}

func (l *Look) warn(at decide.Path, summary, detail string) {
	l.notices = append(l.notices, decide.Warn(at, summary, detail))
}

func (l *Look) refuse(at decide.Path, summary, detail string) {
	l.notices = append(l.notices, decide.Refuse(at, summary, detail))
}

// fresh reports whether the plan makes a deployment.
func (l *Look) fresh() bool { return l.Plan.Forecast.Fresh }

// Notices are the notices so far.
func (l *Look) Notices() []decide.Notice { return l.notices }

// Refused reports whether one of them stops the plan.
func (l *Look) Refused() bool { return Plan{Notices: l.notices}.Refused() }

// Place looks at the node of a new deployment, and at that of one which is replaced.
func (l *Look) Place(ctx context.Context) {
	switch {
	case l.Seen.New && l.Wish.Adopt:
		l.adoption(ctx)
	case l.Seen.New && l.Site != nil:
		if !l.tries(ctx) {
			l.occupied(ctx)
		}
	case !l.Seen.New && l.fresh():
		if l.replacement(ctx); !l.Refused() {
			l.End(ctx)
		}
	}
}

// Node reads the node of the wish.
func (l *Look) Node(ctx context.Context) (*ironic.Node, error) {
	if id := l.Wish.Node.V; uuidPattern.MatchString(id) {
		return l.Site.Ironic.NodeForRefresh(ctx, id) // one list serves all nodes
	}
	return l.Site.Ironic.Node(ctx, l.Wish.Node.V)
}

var uuidPattern = regexp.MustCompile(`^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$`)

// Label names a node in messages: by its name if Ironic answers.
func Label(ctx context.Context, site *machine.Site, id string) string {
	node, err := site.Ironic.NodeForRefresh(ctx, id)
	if err != nil {
		return id
	}
	return ironic.NodeLabel(node)
}

// adoption says how the adoption of a machine, and its end, affect that machine, and warns if it cannot be adopted now.
func (l *Look) adoption(ctx context.Context) {
	label, runs := l.Wish.Node.V, false
	if l.Wish.Node.Set && l.Site != nil {
		node, err := l.Node(ctx)
		if api.IsNotFound(err) {
			l.unknown(ctx, label)
		}
		if err == nil {
			label = ironic.NodeLabel(node)
			if power := l.Wish.Power; power.Set && string(power.V) != machine.Power(node) {
				switched := fmt.Sprintf("Node %s is adopted as it runs, and then switched %s.", label, power.V)
				if power.V == PowerOff {
					switched += " " + l.Wish.stops()
				}
				l.warn(decide.At("power_state"), "Power is switched", switched)
			}
			runs = states.Deployed(node)
			if err := checkAdoption(node); err != nil && checkAdoption(expect.AsPlanned(l.Site, node)) != nil {
				_, detail := failure.Explain("", err)
				l.warn(decide.At("adopt"), "Node cannot be adopted", "Unless the node changes first, the apply will fail: "+detail)
				return
			}
		}
	}
	if runs || !l.refuseCleaned() {
		l.warnAdopted(label)
	}
}

// unknown warns that Ironic has no node of a name or UUID, unless this plan creates or changes a host that may be meant.
func (l *Look) unknown(ctx context.Context, ref string) {
	unknown, err := allocate.UnknownNode(ctx, l.Site, ref)
	if err != nil || unknown == "" {
		return // the apply reports what is wrong with the node
	}
	l.warn(decide.At("node_id"), "Ironic does not know this node", unknown+" The apply fails for this deployment, unless that changes "+
		"before. For a host of the same configuration, write the id of the metal_host, so that Terraform creates the host first.")
}

// errUnnamed says that a quarantine needs an allocation with a name.
var errUnnamed = errors.New("on_failure = \"quarantine\" needs an allocation with a name: the note on a failed node names it, so that " +
	"later runs can count those nodes. Set name on the metal_allocation")

// NamedAllocation reads the allocation of a deployment, whose name tells on which nodes the deployment has failed. An allocation without a
// name is an error.
func NamedAllocation(ctx context.Context, site *machine.Site, id string) (*ironic.Allocation, error) {
	allocation, err := site.Ironic.AllocationForRefresh(ctx, id)
	if err == nil && allocation.Name == "" {
		err = errUnnamed
	}
	return allocation, err
}

// tries reports whether a killed run has left the node in quarantine. It also warns if the allocation has no name, which the same apply may
// change, and if a new deployment may try no more nodes.
func (l *Look) tries(ctx context.Context) (quarantined bool) {
	w := l.Wish
	if !w.Allocation.Set {
		return false
	}
	if w.Node.Set {
		node, err := l.Site.Ironic.NodeForRefresh(ctx, w.Node.V)
		if err == nil && notes.InQuarantineFor(node, w.Allocation.V) {
			l.warn(decide.At("node_id"), "Quarantine is finished",
				fmt.Sprintf("A deployment has failed on node %s, and an earlier run was interrupted while it put the node into "+
					"quarantine. The apply undeploys the node and ends with an error; the apply after it deploys another node.",
					ironic.NodeLabel(node)))
			return true
		}
	}
	if !w.Quarantines {
		return false
	}
	allocation, err := NamedAllocation(ctx, l.Site, w.Allocation.V)
	if errors.Is(err, errUnnamed) {
		l.warn(decide.At("allocation_id"), "Allocation without a name", "Unless the same apply names the allocation first, it will fail "+
			"for this deployment: "+failure.Sentence(err))
	}
	if err != nil {
		return false // the apply reports what is wrong with the allocation
	}
	if _, err := CheckTries(ctx, l.Site, allocation, w.MaxNodes); failure.Is(err, KindTried) {
		l.warn(decide.At("max_nodes"), "No other node is tried", "The apply fails for this deployment. "+failure.Sentence(err))
	}
	return false
}

// occupied warns if the node of a new deployment is deployed already, and refuses a node that is protected. If a killed run has
// begun the deployment, it says that the apply continues it. Terraform does not tell the provider that it replaces a
// tainted resource: the provider sees only a creation. For -replace there is no warning, because Terraform drops those of the creation.
func (l *Look) occupied(ctx context.Context) {
	if !l.Wish.Node.Set {
		return
	}
	node, err := l.Node(ctx)
	if api.IsNotFound(err) {
		l.unknown(ctx, l.Wish.Node.V)
	}
	if err != nil {
		return // the apply reports what is wrong with the node
	}
	label := ironic.NodeLabel(node)
	again, inState := plansDeployment(l.Site, node.UUID)
	if again {
		l.notices = append(l.notices, Twin(node, "This plan creates two deployments on the node: the apply fails for one of them. Give "+
			"one of them another node_id."))
	}
	if registerOf(l.Site).ended.Has(node.UUID) {
		l.notices = append(l.notices, otherAddress(label))
		return
	}
	if l.refuseSuccessor(node) || !states.IsOccupied(node) {
		return
	}
	if by := LostDeployment(l.Site, node, l.Wish.Deployment.Digest(), l.Wish.Allocation.V, !l.Wish.Allocation.Unknown); by != nil {
		l.Site.Run.Announce(notes.MarkReservation, node.UUID)
		l.notices = append(l.notices, machine.TakenOver(by, "this deployment on node "+label,
			"After -refresh=false, the plan may instead replace a deployment that is tainted: then the node is "+l.lossOf(ctx, node)+"."))
		return
	}
	if node.Protected {
		l.refuseProtected(node)
		return
	}
	if !inState {
		l.warn(decide.At("node_id"), "Node is deployed already",
			fmt.Sprintf("Node %s is in state %q, and this state has no deployment of it. The provider deploys no node on which something "+
				"else runs, so the apply fails. To manage what runs, import it; otherwise name another node. With -refresh=false, the "+
				"plan may be replacing a tainted deployment instead: then the node is %s.",
				label, node.ProvisionState, l.lossOf(ctx, node)))
		return
	}
	if expect.Undeploy(l.Site, node.UUID); expect.KeepsDisks(l.Site, node) {
		l.notices = append(l.notices, disksTooLate(label))
		return
	}
	l.warn(nil, undeploysSummary, fmt.Sprintf("Node %s is deployed already, in state %q, and the state has that deployment. If it is "+
		"tainted, or named by -replace, this plan replaces it: the node is %s. To avoid that, run terraform untaint with its address, "+
		"or leave out -replace. With on_destroy = \"forget\" in the state, the machine would keep running, and could not be deployed "+
		"again. If the plan does not replace that deployment, the apply fails for this one: give one of them another node_id, and do not "+
		"import the node a second time. This command names the resource in the state: terraform state list -id=%s.", label,
		node.ProvisionState, l.lossOf(ctx, node), node.UUID))
}

// refuseSuccessor refuses a deployment on a node that somebody else uses now, if its former deployment has left the state in this run. It
// does not refuse what a killed run of this configuration has begun there.
func (l *Look) refuseSuccessor(node *ironic.Node) bool {
	allocation := l.Wish.Allocation
	ours := allocation.Unknown || allocation.Set && node.InstanceUUID == allocation.V
	used := states.IsOccupied(node) || node.InstanceUUID != ""
	if !registerOf(l.Site).left.Has(node.UUID) || ours || !used || l.Site.BegunReservation(node, allocation.V) != nil {
		return false
	}
	instance := cmp.Or(strings.TrimSpace(node.InstanceName+" "+node.InstanceUUID), "without an instance")
	ends := "metal undeploy --release"
	if !states.IsOccupied(node) {
		ends = "metal release --node"
	}
	l.refuse(decide.At("node_id"), "Another deployment has the machine", fmt.Sprintf("Node %s is in state %q, with instance %s. It does "+
		"not run this deployment any more. The provider deploys no machine that others use.\n\n"+
		"To manage what is there, run terraform apply -refresh-only, which takes this deployment out of the state, and import it. To "+
		"deploy here, first run %s %s, which erases the machine. Otherwise set another node_id.",
		ironic.NodeLabel(node), node.ProvisionState, instance, ends, ironic.NodeArgument(node)))
	return true
}

// otherAddress refuses to undeploy a node and to deploy it again under another address: Terraform may begin with either.
func otherAddress(node string) decide.Notice {
	return decide.Refuse(nil, "Deployment has another address", fmt.Sprintf("This plan destroys the metal_deployment of node %s, which "+
		"wipes the machine, and creates one on the same node under another address. Terraform may begin with either, so the apply might "+
		"fail.\n\nIf only its key or name has changed, add a moved block from the old address to the new one: the machine runs on. To "+
		"deploy anew, apply the destruction first.", node))
}

// Undeploys tells the other resources of the run whether this plan undeploys the node. It refuses that if another one has planned to deploy
// the node under another address.
func (l *Look) Undeploys() {
	if l.Site == nil || !Has(l.Plan.Steps, DoUndeploy) {
		return
	}
	expect.Undeploy(l.Site, l.Seen.ID)
	registerOf(l.Site).ended.Add(l.Seen.ID)
	if registerOf(l.Site).planned.Has(l.Seen.ID) {
		l.notices = append(l.notices, otherAddress(l.Seen.Label))
	}
}

// refuseProtected refuses a new deployment on a protected node. Terraform does not tell the provider that it replaces a
// resource that is tainted or named by -replace: the provider sees only a creation.
func (l *Look) refuseProtected(node *ironic.Node) {
	l.refuse(decide.At("protected"), protectedSummary,
		fmt.Sprintf("Node %s is protected in Ironic, and a new deployment would first undeploy it. If this plan replaces its deployment, "+
			"because that is tainted or because of -replace, and if the machine may be wiped: run terraform untaint if it is tainted, "+
			"apply protected = false without -replace, and then replace it. If an earlier run of yours has deployed it and its state is "+
			"lost, import it (terraform import ADDRESS %s). If the node belongs to another user, choose another node.",
			ironic.NodeLabel(node), ironic.NodeArgument(node)))
}

// Twin warns of a second deployment of a node.
func Twin(node *ironic.Node, detail string) decide.Notice {
	return decide.Warn(decide.At("node_id"), "Two deployments for one node",
		fmt.Sprintf("Node %s runs only one deployment. %s This command names the resource in the state: terraform state list -id=%s.",
			ironic.NodeLabel(node), detail, node.UUID))
}

// IsDeployed reports whether something is deployed on a node, or being deployed.
func IsDeployed(node *ironic.Node) bool { return states.IsOccupied(node) }

// Gone says that a deployment leaves the state, because its node does not run it any more, and why. reason follows the name of the node.
func Gone(node, reason string) decide.Notice {
	return decide.Warn(nil, "Deployment is gone", fmt.Sprintf("Node %s %s.", node, reason))
}

// replacement refuses a replacement that cannot succeed, before the apply undeploys the present node. If the same apply may
// still remove the obstacle, it warns. It does not check values that are not known yet.
func (l *Look) replacement(ctx context.Context) {
	w := l.Wish
	if !w.Node.Set || l.Site == nil {
		return
	}
	at, stays := decide.At("node_id"), fmt.Sprintf("\n\nWithout this change, node %s keeps running.", l.Seen.Label)
	node, err := l.Site.Ironic.Node(ctx, w.Node.V)
	switch {
	case api.IsNotFound(err):
		l.refuse(at, "Node does not exist", fmt.Sprintf("Ironic has no node %q. If a metal_host of this configuration makes it, or gives "+
			"it that name, refer to its id: node_id = metal_host.<name>.id.%s", w.Node.V, stays))
		return
	case err != nil:
		summary, detail := failure.Explain("read node "+w.Node.V, err)
		l.refuse(at, summary, detail)
		return
	case node.UUID == l.Seen.ID && l.Seen.Was.forgets():
		next := "To replace its deployment, apply on_destroy = \"undeploy\" first."
		if machine.ByAgent(node) {
			next = agentAdvice + " Then apply on_destroy = \"undeploy\", and after that replace the deployment."
		}
		l.refuse(decide.At("on_destroy"), "Forgotten machine cannot be replaced", fmt.Sprintf("on_destroy is \"forget\": node %s would "+
			"keep running, and could not be deployed again. %s", ironic.NodeLabel(node), next))
		return
	case w.Allocation.Unknown || !l.allocation(ctx, node, stays) || node.UUID == l.Seen.ID:
		return
	}
	if w.Adopt {
		l.adoption(ctx)
		return
	}
	err = deployable(node, w.Allocation.V)
	if err == nil || deployable(expect.AsPlanned(l.Site, node), w.Allocation.V) == nil {
		return
	}
	_, detail := failure.Explain("", err)
	if states.IsOccupied(node) {
		l.refuse(at, "Node cannot be deployed", detail+stays)
		return
	}
	l.warn(at, "Node cannot be deployed as it is now", fmt.Sprintf("Unless another change in this apply removes the cause, the apply "+
		"will undeploy node %s and then fail: %s", l.Seen.Label, detail))
}

// allocation refuses an allocation that reserves another node. It reports whether the allocation is known, so that
// the node's reservation can be compared with it.
func (l *Look) allocation(ctx context.Context, node *ironic.Node, stays string) bool {
	if l.Wish.Allocation.IsNull() {
		return true
	}
	id, at := l.Wish.Allocation.V, decide.At("allocation_id")
	if suspended := notes.SuspendedAllocation(node); suspended != nil && suspended.UUID == id {
		return false // the provider creates it again when the node is free
	}
	allocation, err := l.Site.Ironic.Allocation(ctx, id)
	switch {
	case api.IsNotFound(err):
		l.refuse(at, "Allocation does not exist", fmt.Sprintf("Ironic has no allocation %s.%s", id, stays))
		return false
	case err != nil:
		summary, detail := failure.Explain("read allocation "+id, err)
		l.refuse(at, summary, detail)
		return false
	case allocation.NodeUUID != "" && allocation.NodeUUID != node.UUID:
		l.refuse(at, "Allocation of another node", fmt.Sprintf("Allocation %s reserves node %s, not node %s.%s", id, allocation.NodeUUID,
			ironic.NodeLabel(node), stays))
		return false
	}
	return allocation.NodeUUID != ""
}

const (
	undeploysSummary = "Destroying undeploys the machine"
	forgetsSummary   = "Destroying leaves the machine running"
	cleanedLoss      = "undeployed and cleaned: it stops, and the data on its disks is lost"
)

func (l *Look) lossOf(ctx context.Context, node *ironic.Node) string {
	if StaysUncleaned(node) {
		return "undeployed, and not cleaned (automated_clean is false): it stops, and its disks keep their data"
	}
	return cleanedLoss + l.exceptKept(ctx, node)
}

// End warns how destroying or replacing a deployment affects its machine.
func (l *Look) End(ctx context.Context) {
	label, loss, ends := l.loss(ctx)
	was := l.Seen.Was
	switch {
	case !ends:
	case was.forgets():
		l.warn(nil, forgetsSummary, fmt.Sprintf("on_destroy is \"forget\": node %s keeps running and stays reserved. Terraform does not "+
			"manage it any more.", label))
	case was.EndsAdoption():
		l.warn(nil, forgetsSummary, fmt.Sprintf("Ironic has adopted node %s after the apply that asked for it had failed. The node keeps "+
			"running and stays reserved.", label))
	default:
		l.warn(nil, undeploysSummary, fmt.Sprintf("Node %s is %s.", label, loss))
		if useless := disks.TellUseless("Node "+label, l.kept.Hints, l.kept.All); useless != "" {
			l.warn(nil, uselessSummary, useless)
		}
		l.runbook(ctx)
	}
}

// runbook warns of a cleaning runbook with which Ironic cannot begin to clean the undeployed machine
// (reference/ironic.md#cleaning-by-a-runbook).
func (l *Look) runbook(ctx context.Context) {
	if l.Site == nil {
		return
	}
	node, err := l.Site.Ironic.NodeForRefresh(ctx, l.Seen.ID)
	version, bad := l.Site.Ironic.Microversion(ctx)
	if err != nil || bad != nil || version < api.VersionCleaningRunbook {
		return // another look reports it, or Ironic cleans by no runbook
	}
	name, _ := node.DriverInfo[machine.KeyRunbook].(string)
	if name == "" {
		return
	}
	found, err := expect.FindRunbook(ctx, l.Site, name)
	why := ""
	switch suits := func(trait string) bool { return slices.Contains(node.Traits, trait) }; {
	case api.IsNotFound(err) && l.Site.Ironic.Project() == "":
		why = "does not exist"
	case err == nil && !found.Open && version >= api.VersionRunbookTraits && !slices.ContainsFunc(found.Traits, suits):
		why = "has none of the node's traits"
	default:
		return
	}
	l.warn(nil, "Cleaning runbook cannot be used",
		fmt.Sprintf("Ironic is to clean node %s by runbook %s, the cleaning_runbook of its metal_host, and that runbook %s. Where the "+
			"site honours it, the undeployment leaves the node in state deleting until a conductor is restarted. Correct "+
			"cleaning_runbook or the runbook before you apply this plan.", ironic.NodeLabel(node), name, why))
}

// loss returns how undeploying the node affects its data, and whether there is anything to end.
func (l *Look) loss(ctx context.Context) (label, loss string, ends bool) {
	if l.Site == nil {
		return l.Seen.ID, cleanedLoss, true
	}
	was := l.Seen.Was
	node, err := l.Site.Ironic.NodeForRefresh(ctx, l.Seen.ID)
	switch {
	case api.IsNotFound(err):
		return "", "", false
	case err != nil:
		return l.Seen.ID, cleanedLoss, true
	case LossReason(node, l.Seen.Instance, was.Allocation.V) != "":
		return "", "", false // another user has it now: Delete does not touch it
	case NeedsCleaning(node, l.Seen.Instance) && !was.forgets():
		return ironic.NodeLabel(node), "cleaned, because an earlier run has undeployed it without cleaning: the data on its disks is lost" +
			l.exceptKept(ctx, node), true
	case was.Adopt && !states.IsOccupied(node) && (was.EndsAdoption() || !states.IsInProgress(node)):
		return "", "", false // its adoption has not succeeded: it goes back to manageable
	case states.Settled(states.GoalUndeployed, ironic.State(node.ProvisionState)):
		return "", "", false // the node is not deployed
	}
	return ironic.NodeLabel(node), l.lossOf(ctx, node), true
}
