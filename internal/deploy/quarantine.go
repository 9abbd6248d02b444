package deploy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gophercloud/gophercloud/v2/openstack/baremetal/v1/nodes"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/allocate"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/clock"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/decide"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/failure"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/notes"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/reason"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/states"
)

// quarantineAge is how long a quarantine counts against the number of nodes that a deployment may try.
const quarantineAge = 24 * time.Hour

// Try says for which allocation a deployment is tried, and on how many nodes it may be tried.
type Try struct {
	Allocation *ironic.Allocation
	Max        int
	failed     []*ironic.Node // in quarantine for the allocation
}

// CheckTries counts the nodes that are in quarantine because a deployment for an allocation of this name failed on them within the last
// day. It returns an error of KindTried if no more may be tried. max is at least 1.
func CheckTries(ctx context.Context, site *machine.Site, allocation *ironic.Allocation, most int) (Try, error) {
	try := Try{Allocation: allocation, Max: most}
	retired, err := allocate.RetiredNodes(ctx, site)
	if err != nil {
		return try, err
	}
	for i := range retired {
		q := notes.QuarantineOf(&retired[i])
		if q != nil && !q.IsMove() && q.Allocation == allocation.Name && clock.IsYoung(q.Since, site.Ironic.ServerNow(), quarantineAge) {
			try.failed = append(try.failed, &retired[i])
		}
	}
	slices.SortFunc(try.failed, func(a, b *ironic.Node) int {
		return cmp.Or(notes.QuarantineOf(a).Since.Compare(notes.QuarantineOf(b).Since), cmp.Compare(a.UUID, b.UUID))
	})
	if len(try.failed) >= most {
		return try, triedError(try)
	}
	return try, nil
}

// IsDeployFailure reports whether err says that Ironic has failed to deploy a machine. Other errors do not speak against the machine.
func IsDeployFailure(err error) bool {
	failed := failure.As(err, failure.KindFailed)
	return failed != nil && (failed.Goal == states.GoalDeployed || failed.Goal == states.GoalRebuilt) &&
		ironic.State(failed.Node.ProvisionState) == nodes.DeployFail && !machine.LacksVIF(failed.Node)
}

// Quarantine takes the machine out of use after its deployment has failed: it retires the node, notes why, and undeploys it, so that Ironic
// cleans it and leaves it manageable. Ironic deletes the allocation with that. It returns an error of kindQuarantined as soon as the note
// is written, and another error if it could not be written.
func Quarantine(ctx context.Context, m *machine.Machine, try Try, failed error, timeout time.Duration) error {
	q := &notes.Quarantine{
		Allocation: try.Allocation.Name, Instance: try.Allocation.UUID,
		Since: m.Site().Ironic.ServerNow().UTC().Truncate(time.Second), Failed: m.Node().ProvisionUpdatedAt.UTC().Truncate(time.Second),
	}
	var patch ironic.Patch
	if !m.Node().Retired {
		patch.Set("/retired", true)
	}
	patch.Set("/retired_reason", q.Reason())
	patch.Set("/extra/"+notes.KeyQuarantine, q)
	if _, exists := m.Node().Extra[notes.KeyAllocation]; exists { // it is not created again
		patch.Remove("/extra/" + notes.KeyAllocation)
	}
	if err := m.Patch(ctx, patch); err != nil {
		return err
	}
	try.failed = append(slices.Clone(try.failed), m.Node())
	return finishQuarantine(ctx, m, q, &try, failed, timeout)
}

// EndTry puts the machine of a failed deployment into quarantine; not with a nil try. It returns the error that the operation ends with,
// and whether the machine is in quarantine. If it cannot be, EndTry warns, and the failure is treated as without a quarantine. endTemporary
// removes the temporary server profile that the node may have got.
func EndTry(ctx context.Context, m *machine.Machine, try *Try, failed error, timeout time.Duration,
	endTemporary func(context.Context, *ironic.Node, time.Duration) error,
) (is bool, notices []decide.Notice, err error) {
	if try == nil || !IsDeployFailure(failed) || machine.ByAgent(m.Node()) { // no BMC, no undeploy
		return false, nil, failed
	}
	label := ironic.NodeLabel(m.Node())
	if spared := spares(m, failure.As(failed, failure.KindFailed).Why); spared != "" {
		return false, []decide.Notice{decide.Warn(nil, "Machine is not put into quarantine", fmt.Sprintf("on_failure is \"quarantine\", "+
			"but %s. So node %s stays reserved, and the next apply deploys it again. Fix the cause first.", spared, label))}, failed
	}
	err = Quarantine(ctx, m, *try, failed, timeout)
	err = errors.Join(err, endTemporary(ctx, m.Node(), timeout))
	switch {
	case failure.Is(err, kindQuarantined):
		return true, nil, err
	case notes.IsSuperseded(err):
		return false, nil, err
	}
	return false, noQuarantine(label, err), failed
}

// spares says why a failed deployment does not speak against its machine; "" if it does, or if no reason has Ironic's words.
func spares(m *machine.Machine, why *reason.Reason) string {
	switch {
	case why == nil || why.Blame == reason.Machine:
		return ""
	case why.Blame != reason.Unclear:
		return fmt.Sprintf("the reason %s speaks against the %s, not against the machine", why.ID, why.Blame)
	case ImageSource(m.Node()) != "" && registerOf(m.Site()).proven.Has(ImageSource(m.Node())):
		return ""
	}
	return fmt.Sprintf("the reason %s has several causes, and this run has deployed the same image on no other machine, which would "+
		"speak against this one", why.ID)
}

// noQuarantine warns that a node could not be put into quarantine.
func noQuarantine(label string, err error) []decide.Notice {
	summary, detail := failure.Explain("put node "+label+" into quarantine", err)
	return []decide.Notice{decide.Warn(nil, summary, detail+"\n\nThe node stays reserved, and the next apply deploys it again.")}
}

// Rebuild is what EndRebuild must know of an update.
type Rebuild struct {
	Phase        Phase // that has failed
	Wanted       Deployment
	Quarantines  bool   // on_failure says so
	Allocation   string // its UUID
	MaxNodes     int
	Timeout      time.Duration // of the undeployment
	EndTemporary func(context.Context, *ironic.Node, time.Duration) error
}

// NeedsQuarantine reports whether the machine of an update that has failed must leave the deployment: Ironic could not deploy it, and it
// has lost what it ran. A machine that boots a live ISO stays, because it has lost nothing.
func (r Rebuild) NeedsQuarantine(failed error) bool {
	return r.Quarantines && r.Phase == Deploys && r.Wanted.LiveISO == nil && IsDeployFailure(failed)
}

// EndRebuild is EndTry for a machine that ran before. If it puts the machine into quarantine, the next refresh removes the deployment from
// the state. If deployments have failed on most nodes within a day, the machine stays as it is: then the nodes are not at fault.
func EndRebuild(ctx context.Context, m *machine.Machine, r Rebuild, failed error) ([]decide.Notice, error) {
	if !r.NeedsQuarantine(failed) {
		return nil, failed
	}
	var try Try
	allocation, err := NamedAllocation(ctx, m.Site(), r.Allocation)
	if err == nil {
		try, err = CheckTries(ctx, m.Site(), allocation, r.MaxNodes)
	}
	if err != nil {
		return noQuarantine(ironic.NodeLabel(m.Node()), err), failed
	}
	_, notices, err := EndTry(ctx, m, &try, failed, r.Timeout, r.EndTemporary)
	return notices, err
}

// FinishQuarantine undeploys a machine that a killed run has put into quarantine for an allocation. It returns an error of kindQuarantined,
// or nil if the machine is in no such quarantine.
func FinishQuarantine(ctx context.Context, m *machine.Machine, allocation string, timeout time.Duration) error {
	q := notes.UnfinishedQuarantine(m.Node(), allocation)
	if q == nil {
		return nil
	}
	return finishQuarantine(ctx, m, q, nil, nil, timeout)
}

func finishQuarantine(ctx context.Context, m *machine.Machine, q *notes.Quarantine, try *Try, failed error, timeout time.Duration) error {
	left := undeployQuarantined(ctx, m, q, timeout)
	if notes.IsSuperseded(left) {
		return left
	}
	return quarantined(m.Node(), q, try, failed, left)
}

// undeployQuarantined undeploys a machine in quarantine. It stops with an error of KindRefused if another client deploys the machine
// meanwhile: the machine may wait for a slot for hours.
func undeployQuarantined(ctx context.Context, m *machine.Machine, q *notes.Quarantine, timeout time.Duration) error {
	defer m.OnlyIn(q)()
	_, err := Undeploy(ctx, m, q.Instance, "", timeout)
	return err
}

// kindQuarantined is the kind of an error which says that a deployment has failed on a node, and that the node is in quarantine.
const kindQuarantined failure.Kind = "quarantined"

// quarantined returns such an error. try is nil if an earlier run has tried, and failed if an earlier run has seen why the deployment
// failed. left says why the node is not undeployed yet; nil if it is.
func quarantined(node *ironic.Node, q *notes.Quarantine, try *Try, failed, left error) *failure.Error {
	e := &failure.Error{Kind: kindQuarantined, Node: node, Fact: fmt.Sprintf("an earlier run has put node %s into quarantine: %s",
		ironic.NodeLabel(node), q)}
	if why := failure.As(failed, failure.KindFailed); why != nil {
		e.Fact, e.Words, e.Why = why.Fact, why.Words, why.Why
	}
	is := fmt.Sprintf("The node is in quarantine: it is undeployed, retired and in state %q, so that no allocation reserves it. Its "+
		"allocation is gone.", node.ProvisionState)
	next := "Apply again, which reserves and deploys another node."
	switch {
	case api.IsInterrupted(left):
		is, next = "The node is retired. The run was interrupted before the node was undeployed.",
			"Apply again, which finishes that; the apply after it deploys another node."
	case left != nil:
		is = "The node is retired, so that no allocation reserves it, but could not be undeployed, and its disks may still hold data: " +
			failure.Sentence(left)
		next = "Fix the cause and apply again."
	}
	if try != nil && left == nil {
		next = fmt.Sprintf("This was node %d of at most %d (max_nodes). %s", len(try.failed), try.Max, next)
		if len(try.failed) >= try.Max {
			next = fmt.Sprintf("No other node is tried, because %d of at most %d nodes (max_nodes) have failed within 24 hours. Fix the "+
				"cause first.", len(try.failed), try.Max)
		}
	}
	e.Advice = is + " " + next + "\n\n" + returning
	return e
}

// returning says how a node leaves its quarantine.
const returning = "To return a node to use, repair it and set retired = false on its metal_host. Without Terraform: metal unretire " +
	"<node>, then metal provide <node>."

// KindTried is the kind of an error which says that a deployment has failed on as many nodes as it may try.
const KindTried failure.Kind = "tried"

func triedError(try Try) *failure.Error {
	var names []string
	for _, node := range try.failed {
		names = append(names, fmt.Sprintf("%s at %s", ironic.NodeLabel(node), notes.QuarantineOf(node).Since.UTC().Format(time.RFC3339)))
	}
	return &failure.Error{
		Kind: KindTried, Fact: fmt.Sprintf("deployments for allocation %s have failed on %d of at most %d nodes (max_nodes) within 24 "+
			"hours: %s", try.Allocation.Name, len(try.failed), try.Max, strings.Join(names, ", ")),
		Advice: "The node that the allocation has reserved was not touched. Fix the cause, such as the image or the network, and return " +
			"these nodes to use, or raise max_nodes.\n\n" + returning,
	}
}

// leftTimeout is how long EndLeftQuarantine waits for the undeploy of a node.
const leftTimeout = time.Hour

// EndLeftQuarantine undeploys a node that a killed run has put into quarantine for an allocation. It reports whether there was such a
// quarantine.
func EndLeftQuarantine(ctx context.Context, site *machine.Site, node *ironic.Node, allocation string) (ended bool, err error) {
	if !notes.InQuarantineFor(node, allocation) {
		return false, nil
	}
	return true, undeployQuarantined(ctx, site.Record(node), notes.QuarantineOf(node), leftTimeout)
}
