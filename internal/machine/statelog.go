package machine

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/gophercloud/gophercloud/v2/openstack/baremetal/v1/nodes"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/states"
)

// stateLog logs each change of a machine's provision state once, however many records see it. It is safe for concurrent use.
type stateLog struct {
	mu   sync.Mutex
	last map[string]logged
}

func statesOf(site *Site) *stateLog {
	return Kept(site, func(*Site) *stateLog { return &stateLog{last: map[string]logged{}} })
}

// logged is the state of a machine that the log has told last.
type logged struct {
	state string
	since time.Time
}

// begin remembers the state of a machine that the log does not know yet.
func (l *stateLog) begin(n *ironic.Node) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, known := l.last[n.UUID]; known {
		return
	}
	l.last[n.UUID] = logged{n.ProvisionState, n.ProvisionUpdatedAt}
}

// change records the state of a machine. It returns the state before, and false unless the state is new. Times are compared in whole
// seconds, because answers to writes have no others.
func (l *stateLog) change(n *ironic.Node) (before logged, changed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	before, known := l.last[n.UUID]
	if !known || before.state == n.ProvisionState || n.ProvisionUpdatedAt.Unix() < before.since.Unix() {
		return before, false
	}
	l.last[n.UUID] = logged{n.ProvisionState, n.ProvisionUpdatedAt}
	return before, true
}

// logState logs the provision state of the machine if it has changed. It waits for the reason of a failure, which Ironic writes
// after the state (reference/ironic.md#state-and-lock).
func (m *Machine) logState(ctx context.Context) {
	m.tellState()
	unsuccessful := states.Failed(m.State()) || m.State() == nodes.Enroll
	if unsuccessful && m.node.Reservation != "" && m.node.LastError == "" {
		return
	}
	before, changed := statesOf(m.site).change(m.node)
	if !changed {
		return
	}
	text := fmt.Sprintf("changed state: %s -> %s", before.state, m.node.ProvisionState)
	if after := m.node.ProvisionUpdatedAt.Sub(before.since); states.InProgress(ironic.State(before.state)) && after > 0 && !before.since.IsZero() {
		text += fmt.Sprintf(" after %s", after.Round(time.Second))
	}
	if unsuccessful && m.node.LastError != "" {
		text += ": " + api.FirstLine(m.node.LastError)
	}
	m.logInfo(ctx, text, "from", before.state, "state", m.node.ProvisionState)
}

// logInfo logs what the machine does. The text is a predicate. It has all facts, because Terraform writes attributes in no order.
func (m *Machine) logInfo(ctx context.Context, text string, args ...any) {
	m.site.Ironic.Logger().InfoContext(ctx, "machine "+ironic.NodeLabel(m.node)+" "+text, append(NodeAttributes(m.node), args...)...)
}

// NodeAttributes are the attributes of a log line that identify a node.
func NodeAttributes(n *ironic.Node) []any { return []any{"node", n.Name, "uuid", n.UUID} }
