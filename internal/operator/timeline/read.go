package timeline

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/fault"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/notes"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/states"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/operator/watch"
)

// KindNotFound is the kind of an error which says that neither Ironic nor a record has a node or an allocation.
const KindNotFound fault.Kind = "in no record"

// Read asks Ironic for what it knows of a node (name, UUID, MAC address of a port or bmc:ADDRESS) or an allocation (name or UUID). records
// are those of metal watch; they may know what Ironic has no longer. What Ironic refuses to show is missing in the facts.
func Read(ctx context.Context, client *ironic.Client, ref string, records [][]watch.Entry) (Facts, error) {
	r := &reader{client: client, records: records}
	if len(records) == 0 {
		r.lacks("No record of metal watch was given.")
	}
	err := r.read(ctx, ref)
	r.facts.Now = client.ServerNow()
	return r.facts, err
}

// ReadHistory asks Ironic for the history of nodes. What Ironic refuses to show is missing in the facts.
func ReadHistory(ctx context.Context, client *ironic.Client, nodes []ironic.Node) (Facts, error) {
	r := &reader{client: client}
	r.facts.Subject = fmt.Sprintf("%d nodes", len(nodes))
	of := "some of these nodes"
	if len(nodes) == 1 {
		r.facts.Subject = "node " + ironic.NodeLabel(&nodes[0])
		of = r.facts.Subject
	}
	for i := range nodes {
		m := Evidence{ID: nodes[i].UUID, Name: cmp.Or(nodes[i].Name, nodes[i].UUID), Node: &nodes[i]}
		if err := r.history(ctx, &m, of); err != nil {
			return r.facts, err
		}
		r.facts.Machines = append(r.facts.Machines, m)
	}
	r.facts.Now = client.ServerNow()
	return r.facts, nil
}

type reader struct {
	client  *ironic.Client
	records [][]watch.Entry
	facts   Facts
}

func (r *reader) lacks(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !slices.Contains(r.facts.Missing, text) {
		r.facts.Missing = append(r.facts.Missing, text)
	}
}

func (r *reader) read(ctx context.Context, ref string) error {
	node, err := r.client.FindNode(ctx, ref)
	if err == nil {
		r.facts.Subject = "node " + ironic.NodeLabel(node)
		if other, err := r.client.Allocation(ctx, ref); err == nil && other.NodeUUID != node.UUID {
			r.lacks("An allocation has this name, too: for its life, use its UUID, %s.", other.UUID)
		}
		return r.add(ctx, node.UUID, node, nil)
	}
	if !api.IsNotFound(err) {
		return err
	}
	allocation, err := r.client.Allocation(ctx, ref)
	switch {
	case err == nil:
		return r.follow(ctx, allocation.UUID, allocation)
	case !api.IsNotFound(err):
		return err
	}
	if found, err := r.suspended(ctx, ref); found || err != nil {
		return err
	}
	for _, e := range slices.Backward(slices.Concat(r.records...)) {
		switch ref {
		case e.Node, e.Name:
			r.facts.Subject = "node " + label(e.Name, e.Node)
			r.lacks("Ironic has no node %s any more: only records tell of it.", ref)
			return r.add(ctx, e.Node, nil, nil)
		case e.Instance, e.Allocation:
			r.lacks("Ironic has no allocation %s any more: only records tell of it.", ref)
			err := r.follow(ctx, e.Instance, nil)
			r.facts.Subject = "allocation " + label(e.Allocation, e.Instance)
			return err
		}
	}
	return &fault.Error{Kind: KindNotFound, Fact: "neither Ironic nor a record has a node or an allocation " + ref + " that you may see"}
}

// suspended tells the life of an allocation that an undeployment has deleted and is to create again, and reports whether there is one.
func (r *reader) suspended(ctx context.Context, ref string) (found bool, err error) {
	nodes, err := r.client.ListNodeFields(ctx, ironic.NodeFilter{}, []string{"uuid", "name", "provision_state", "instance_uuid", "extra"})
	switch {
	case api.IsForbidden(err):
		r.lacks("Ironic does not list nodes to you: whether one of them is to get allocation %s again is not known.", ref)
		return false, nil
	case err != nil:
		return false, fmt.Errorf("list the nodes: %w", err)
	}
	for i := range nodes {
		spec := notes.SuspendedAllocation(&nodes[i])
		if spec == nil || spec.UUID != ref && spec.Name != ref {
			continue
		}
		r.lacks("Ironic has no allocation %s now: an undeployment of node %s is to create it again.", ref, ironic.NodeLabel(&nodes[i]))
		return true, r.follow(ctx, spec.UUID, &ironic.Allocation{
			UUID: spec.UUID, Name: spec.Name, NodeUUID: nodes[i].UUID,
			Extra: spec.Extra, State: "deleted",
		})
	}
	return false, nil
}

func label(name, id string) string {
	if name == "" || name == id {
		return id
	}
	return name + " (" + id + ")"
}

// add adds a machine. Without a node, Ironic has none.
func (r *reader) add(ctx context.Context, id string, node *ironic.Node, periods []Period) error {
	m := Evidence{ID: id, Name: r.nameOf(id), Node: node, Periods: periods}
	if len(r.records) > 0 && m.Name == "" {
		r.lacks("No record has node %s.", id)
	}
	m.Records = r.records
	if node != nil {
		m.Name = node.Name
		if err := r.history(ctx, &m, "node "+ironic.NodeLabel(node)); err != nil {
			return err
		}
		if err := r.reservation(ctx, &m); err != nil {
			return err
		}
		if node.Hidden.LastError || node.Hidden.DriverInternalInfo {
			r.lacks("Ironic hides fields of node %s from you.", ironic.NodeLabel(node))
		}
	}
	m.Name = cmp.Or(m.Name, id)
	r.facts.Machines = append(r.facts.Machines, m)
	return nil
}

// nameOf is the name that records have of a node; "" if none has it.
func (r *reader) nameOf(id string) string {
	for _, e := range slices.Backward(slices.Concat(r.records...)) {
		if e.Node == id {
			return cmp.Or(e.Name, id)
		}
	}
	return ""
}

// history reads the history of a node. of names the nodes of which it is missing.
func (r *reader) history(ctx context.Context, m *Evidence, of string) error {
	version, err := r.client.Microversion(ctx)
	if err != nil {
		return err
	}
	if version < api.VersionHistory {
		r.lacks("Ironic has no history of nodes (API 1.%d).", api.VersionHistory)
		return nil
	}
	switch m.History, err = r.client.History(ctx, m.ID); {
	case api.IsForbidden(err), api.IsNotFound(err):
		r.lacks("Ironic does not show you the history of %s.", of)
	case err != nil:
		return fmt.Errorf("read the history of node %s: %w", ironic.NodeLabel(m.Node), err)
	case len(m.History) == 0:
		r.lacks("The history of %s is empty. Older Ironics record failures only, and [conductor]node_history can switch it off.", of)
	}
	return nil
}

// reservation reads the allocation that has reserved a node, unless it is the subject.
func (r *reader) reservation(ctx context.Context, m *Evidence) error {
	if m.Node.AllocationUUID == "" || r.facts.Allocation != nil {
		return nil
	}
	allocation, err := r.client.AllocationOf(ctx, m.ID)
	switch {
	case api.IsForbidden(err), api.IsNotFound(err):
		r.lacks("Ironic does not show you the allocation of node %s.", ironic.NodeLabel(m.Node))
		return nil
	case err != nil:
		return fmt.Errorf("read the allocation of node %s: %w", ironic.NodeLabel(m.Node), err)
	}
	m.Reserved = allocation
	return nil
}

// follow adds the machines of an allocation: the present one, those that records know, and those in quarantine because of it.
func (r *reader) follow(ctx context.Context, id string, allocation *ironic.Allocation) error {
	r.facts.Allocation = allocation
	periods := map[string][]Period{}
	var order []string
	belongs := func(node string, p Period) {
		if periods[node] == nil {
			order = append(order, node)
		}
		periods[node] = append(periods[node], p)
	}
	r.facts.Subject = "allocation " + id
	if allocation != nil {
		r.facts.Subject = "allocation " + label(allocation.Name, id)
	}
	for _, record := range r.records {
		for _, held := range holdings(record, id) {
			belongs(held.node, held.Period)
		}
	}
	if allocation != nil && allocation.NodeUUID != "" {
		from := notes.FirstCreated(allocation.Extra) // an undeployment creates an allocation again on the same node
		if from.IsZero() {
			from, _ = time.Parse(time.RFC3339, allocation.CreatedAt) // zero: always
		}
		belongs(allocation.NodeUUID, Period{From: from})
	}
	if err := r.quarantined(ctx, id, belongs); err != nil {
		return err
	}
	for _, node := range order {
		n, err := r.client.Node(ctx, node)
		if err != nil && !api.IsNotFound(err) {
			return fmt.Errorf("read node %s: %w", node, err)
		}
		if err := r.add(ctx, node, n, periods[node]); err != nil {
			return err
		}
	}
	return nil
}

// quarantined finds the nodes in quarantine because the deployment for an allocation failed on them.
func (r *reader) quarantined(ctx context.Context, allocation string, found func(node string, p Period)) error {
	retired := true
	nodes, err := r.client.ListNodeFields(ctx, ironic.NodeFilter{Retired: &retired}, []string{
		"uuid", "name", "provision_state", "extra",
		"retired", "retired_reason",
	})
	switch {
	case api.IsForbidden(err):
		r.lacks("Ironic does not list nodes to you: whether one is in quarantine because of the allocation is not known.")
		return nil
	case err != nil:
		return fmt.Errorf("list the retired nodes: %w", err)
	}
	for i := range nodes {
		if q := notes.QuarantineOf(&nodes[i]); q != nil && q.Instance == allocation {
			found(nodes[i].UUID, Period{From: q.Failed.Add(-slack), To: q.Since})
		}
	}
	return nil
}

// holding is a time in which a node was reserved.
type holding struct {
	node string
	Period
}

// holdings returns when which nodes were reserved by an allocation, according to a record.
func holdings(record []watch.Entry, allocation string) (all []holding) {
	open := map[string]int{} // positions in all
	for _, e := range record {
		at, known := open[e.Node]
		switch {
		case e.Node == "":
		case e.Instance == allocation && !known:
			h := holding{e.Node, Period{From: e.At, To: e.At}}
			if !e.Since.IsZero() && states.Occupied(ironic.State(e.State)) {
				h.From = e.Since
			}
			open[e.Node], all = len(all), append(all, h)
		case known:
			all[at].To = e.At
			if e.Instance != allocation {
				delete(open, e.Node)
			}
		}
	}
	return all
}
