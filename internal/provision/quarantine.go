package provision

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gophercloud/gophercloud/v2/openstack/baremetal/v1/nodes"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
)

// quarantineAge is how long a quarantine counts against the number of nodes that a deployment may try.
const quarantineAge = 24 * time.Hour

// Quarantine is the note on a node on which a deployment failed and which the provider has retired for that. Retired rather than in
// maintenance, because Ironic cleans no node in maintenance.
type Quarantine struct {
	Allocation string    `json:"allocation"` // name of the allocation that had reserved the node
	Instance   string    `json:"instance"`   // its UUID
	Since      time.Time `json:"since"`
	Failed     time.Time `json:"failed"` // when the node entered the state deploy failed, by its conductor's clock, in whole seconds
}

// String says what happened, as a clause with "on it" for the node.
func (q *Quarantine) String() string {
	return fmt.Sprintf("the deployment for allocation %s failed on it at %s", q.Allocation, q.Since.UTC().Format(time.RFC3339))
}

// reason is retired_reason of a node in quarantine. Users who may write notes may not write it, such as the members of a lessee: it proves the note.
func (q *Quarantine) reason() string { return "quarantine: " + q.String() }

// QuarantineOf returns the quarantine of a node; nil if it is in none. A node that is not retired any more, or for another reason, is in none.
func QuarantineOf(n *ironic.Node) *Quarantine {
	text, err := json.Marshal(n.Extra[keyQuarantine])
	var q Quarantine
	if err != nil || !n.Retired || json.Unmarshal(text, &q) != nil || q.Allocation == "" || n.RetiredReason != q.reason() {
		return nil
	}
	return &q
}

// EndQuarantine adds to a patch the removal of the note of a quarantine, if the node has one.
func EndQuarantine(patch *ironic.Patch, n *ironic.Node) {
	if _, exists := n.Extra[keyQuarantine]; exists {
		patch.Remove("/extra/" + keyQuarantine)
	}
}

// unfinishedQuarantine returns the quarantine of a node whose deployment failed for an allocation and which may not be undeployed yet; nil
// if there is none. The note does not count if another client has deployed the node since.
func unfinishedQuarantine(n *ironic.Node, allocation string) *Quarantine {
	if q := QuarantineOf(n); q != nil && allocation != "" && q.Instance == allocation && q.applies(n) {
		return q
	}
	return nil
}

// applies reports whether a node still has the failure that it is in quarantine for, is being undeployed after it, or runs nothing. Anything
// else was deployed after the note was written.
func (q *Quarantine) applies(n *ironic.Node) bool {
	state := ironic.State(n.ProvisionState)
	if state == nodes.DeployFail {
		return q.Failed.Equal(n.ProvisionUpdatedAt.UTC().Truncate(time.Second))
	}
	return state == nodes.Error || !occupied(state)
}

// InQuarantineFor reports whether a node is in quarantine because its deployment failed for an allocation (UUID).
func InQuarantineFor(n *ironic.Node, allocation string) bool {
	return unfinishedQuarantine(n, allocation) != nil
}

// Try says for which allocation a deployment is tried, and on how many nodes it may be tried.
type Try struct {
	Allocation *ironic.Allocation
	Max        int
	failed     []*ironic.Node // in quarantine for the allocation
}

// CheckTries counts the nodes that are in quarantine because a deployment for an allocation of this name failed on them within the last
// day. It returns an error of KindTried if no more may be tried. max is at least 1.
func (s *Site) CheckTries(ctx context.Context, allocation *ironic.Allocation, most int) (Try, error) {
	try := Try{Allocation: allocation, Max: most}
	retired, err := s.retiredNodes(ctx)
	if err != nil {
		return try, err
	}
	for i := range retired {
		q := QuarantineOf(&retired[i])
		if q != nil && q.Allocation == allocation.Name && s.ServerNow().Sub(q.Since).Abs() < quarantineAge {
			try.failed = append(try.failed, &retired[i])
		}
	}
	slices.SortFunc(try.failed, func(a, b *ironic.Node) int {
		return cmp.Or(QuarantineOf(a).Since.Compare(QuarantineOf(b).Since), cmp.Compare(a.UUID, b.UUID))
	})
	if len(try.failed) >= most {
		return try, triedError(try)
	}
	return try, nil
}

// retiredNodes returns the retired nodes with their notes. The deployments of a run share a list that is at most a minute old.
func (s *Site) retiredNodes(ctx context.Context) ([]ironic.Node, error) {
	stock := stockOf(s)
	if err := stock.begin(ctx); err != nil {
		return nil, err
	}
	defer stock.end()
	if !stock.retiredAt.IsZero() && time.Since(stock.retiredAt) < stockAge {
		return stock.retired, nil
	}
	asked, yes := time.Now(), true
	all, err := s.ListNodeFields(ctx, ironic.NodeFilter{Retired: &yes}, []string{"uuid", "name", "retired", "retired_reason", "extra"})
	if err != nil {
		return nil, err
	}
	stock.retired, stock.retiredAt = all, asked
	return all, nil
}

// IsDeployFailure reports whether err says that Ironic has failed to deploy a machine. Other errors do not speak against the machine.
func IsDeployFailure(err error) bool {
	failed := As(err, KindFailed)
	return failed != nil && (failed.Goal == GoalDeployed || failed.Goal == GoalRebuilt) && ironic.State(failed.Node.ProvisionState) == nodes.DeployFail
}

// Quarantine takes the machine out of use after its deployment has failed: it retires the node, notes why, and undeploys it, so that Ironic
// cleans it and leaves it manageable. Ironic deletes the allocation with that. It returns an error of KindQuarantined as soon as the note is
// written, and another error if it could not be written.
func (m *Machine) Quarantine(ctx context.Context, try Try, failed error, timeout time.Duration) error {
	q := &Quarantine{Allocation: try.Allocation.Name, Instance: try.Allocation.UUID, Since: m.site.ServerNow().UTC().Truncate(time.Second), Failed: m.node.ProvisionUpdatedAt.UTC().Truncate(time.Second)}
	var patch ironic.Patch
	if !m.node.Retired {
		patch.Set("/retired", true)
	}
	patch.Set("/retired_reason", q.reason())
	patch.Set("/extra/"+keyQuarantine, q)
	if _, exists := m.node.Extra[keyAllocation]; exists { // it is not created again
		patch.Remove("/extra/" + keyAllocation)
	}
	if err := m.Patch(ctx, patch); err != nil {
		return err
	}
	try.failed = append(slices.Clone(try.failed), m.node)
	return m.finishQuarantine(ctx, q, &try, failed, timeout)
}

// FinishQuarantine undeploys a machine that a killed run has put into quarantine for an allocation. It returns an error of KindQuarantined, or nil if the
// machine is in no such quarantine.
func (m *Machine) FinishQuarantine(ctx context.Context, allocation string, timeout time.Duration) error {
	q := unfinishedQuarantine(m.node, allocation)
	if q == nil {
		return nil
	}
	return m.finishQuarantine(ctx, q, nil, nil, timeout)
}

func (m *Machine) finishQuarantine(ctx context.Context, q *Quarantine, try *Try, failed error, timeout time.Duration) error {
	left := m.undeployQuarantined(ctx, q, timeout)
	if IsSuperseded(left) {
		return left
	}
	return quarantined(m.node, q, try, failed, left)
}

// undeployQuarantined undeploys a machine in quarantine. It stops with an error of KindRefused if another client deploys the machine meanwhile: the
// machine may wait for a slot for hours.
func (m *Machine) undeployQuarantined(ctx context.Context, q *Quarantine, timeout time.Duration) error {
	defer m.onlyIn(q)()
	_, err := m.Undeploy(ctx, q.Instance, "", timeout)
	return err
}

// KindQuarantined is the kind of an error which says that a deployment has failed on a node, and that the node is in quarantine.
const KindQuarantined Kind = "quarantined"

// quarantined returns such an error. try is nil if an earlier run has tried, and failed if an earlier run has seen why the deployment failed. left says
// why the node is not undeployed yet; nil if it is.
func quarantined(node *ironic.Node, q *Quarantine, try *Try, failed, left error) *Error {
	e := &Error{Kind: KindQuarantined, Node: node, Fact: fmt.Sprintf("an earlier run has put node %s into quarantine: %s", ironic.NodeLabel(node), q)}
	if why := As(failed, KindFailed); why != nil {
		e.Fact, e.Words = why.Fact, why.Words
	}
	is := fmt.Sprintf("The node is in quarantine: it is undeployed, retired and in state %q, so that no allocation reserves it. Its allocation is gone.", node.ProvisionState)
	next := "Apply again, which reserves and deploys another node."
	switch {
	case ironic.IsInterrupted(left):
		is, next = "The node is retired. The run was interrupted before the node was undeployed.", "Apply again, which finishes that; the apply after it deploys another node."
	case left != nil:
		is = "The node is retired, so that no allocation reserves it, but could not be undeployed, and its disks may still hold data: " + Sentence(left)
		next = "Fix the cause and apply again."
	}
	if try != nil && left == nil {
		next = fmt.Sprintf("This was node %d of at most %d (max_nodes). %s", len(try.failed), try.Max, next)
		if len(try.failed) >= try.Max {
			next = fmt.Sprintf("No other node is tried, because %d of at most %d nodes (max_nodes) have failed within 24 hours. Fix the cause first.", len(try.failed), try.Max)
		}
	}
	e.Advice = is + " " + next + "\n\n" + returning
	return e
}

// returning says how a node leaves its quarantine.
const returning = "To return a node to use, repair it and set retired = false on its metal_host. Without Terraform: baremetal node unset <node> --retired, then baremetal node provide <node>."

// KindTried is the kind of an error which says that a deployment has failed on as many nodes as it may try.
const KindTried Kind = "tried"

func triedError(try Try) *Error {
	var names []string
	for _, node := range try.failed {
		names = append(names, fmt.Sprintf("%s at %s", ironic.NodeLabel(node), QuarantineOf(node).Since.UTC().Format(time.RFC3339)))
	}
	return &Error{
		Kind: KindTried, Fact: fmt.Sprintf("deployments for allocation %s have failed on %d of at most %d nodes (max_nodes) within 24 hours: %s", try.Allocation.Name, len(try.failed), try.Max, strings.Join(names, ", ")),
		Advice: "The node that the allocation has reserved was not touched. Fix the cause, such as the image or the network, and return these nodes to use, or raise max_nodes.\n\n" + returning,
	}
}

// leftTimeout is how long EndLeftQuarantine waits for the undeploy of a node.
const leftTimeout = time.Hour

// EndLeftQuarantine undeploys a node that a killed run has put into quarantine for an allocation. It reports whether there was such a
// quarantine.
func EndLeftQuarantine(ctx context.Context, s *Site, node *ironic.Node, allocation string) (ended bool, err error) {
	if !InQuarantineFor(node, allocation) {
		return false, nil
	}
	return true, s.Record(node).undeployQuarantined(ctx, QuarantineOf(node), leftTimeout)
}
