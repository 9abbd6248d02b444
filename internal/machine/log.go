package machine

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/gophercloud/gophercloud/v2/openstack/baremetal/v1/nodes"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/tracing"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/operation"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/ramdisk"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/states"
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
	m.operation.See(m.node)
	unsuccessful := states.Failed(m.State()) || m.State() == nodes.Enroll
	if unsuccessful && m.node.Reservation != "" && m.node.LastError == "" {
		return
	}
	before, changed := statesOf(m.site).change(m.node)
	if !changed {
		return
	}
	text := fmt.Sprintf("changed state: %s -> %s", before.state, m.node.ProvisionState)
	if after := m.node.ProvisionUpdatedAt.Sub(before.since); states.InProgress(ironic.State(before.state)) && after > 0 &&
		!before.since.IsZero() {
		text += fmt.Sprintf(" after %s", after.Round(time.Second))
	}
	if unsuccessful && m.node.LastError != "" {
		text += ": " + api.FirstLine(m.node.LastError)
	}
	m.logInfo(ctx, text, "from", before.state, "state", m.node.ProvisionState)
}

// About returns ctx for spans about the machine.
func (m *Machine) About(ctx context.Context) context.Context {
	return tracing.AboutNode(ctx, m.node.Name, m.node.UUID)
}

// PartOf makes the operations on the machine parts of one that has been begun with its node; nil: no trace is wanted.
func (m *Machine) PartOf(whole *operation.Trace) {
	m.operation = whole
	whole.See(m.node)
}

// begin begins the trace of an operation, or of a part of the one in progress. end ends it.
func (m *Machine) begin(ctx context.Context, name string) (context.Context, *operation.Trace) {
	if m.operation != nil {
		return m.operation.Part(ctx, name)
	}
	ctx, m.operation = operation.Begin(ctx, name, m.node, m.site.Ironic)
	return ctx, m.operation
}

func (m *Machine) end(began *operation.Trace, err error) {
	began.End(err)
	if m.operation == began {
		m.operation = nil
	}
}

// logInfo logs what the machine does. The text is a predicate. It has all facts, because Terraform writes attributes in no order.
func (m *Machine) logInfo(ctx context.Context, text string, args ...any) {
	m.site.Ironic.Logger().InfoContext(ctx, "machine "+ironic.NodeLabel(m.node)+" "+text, append(NodeAttributes(m.node), args...)...)
}

// NodeAttributes are the attributes of a log line that identify a node.
func NodeAttributes(n *ironic.Node) []any { return []any{"node", n.Name, "uuid", n.UUID} }

// Tell calls tell with the state of the machine now and after each change that the record sees, and if the machine waits for a slot. tell
// must be safe for concurrent use.
func (m *Machine) Tell(tell func(status string)) {
	m.tell = tell
	m.tellState()
}

// tellState tells the state of the machine, unless it has been told.
func (m *Machine) tellState() {
	if m.tell == nil {
		return
	}
	if now := states.StatusOf(m.node); now != m.told {
		m.told = now
		m.tell(now)
	}
}

// queuedAfter is how long a machine waits for a slot before tellQueued says so.
const queuedAfter = 5 * time.Second

// tellQueued tells that the machine waits for a slot unless admitted is called soon. admitted may be called more than once.
func (m *Machine) tellQueued() (admitted func()) {
	if m.tell == nil {
		return func() {}
	}
	tell, text := m.tell, fmt.Sprintf("node %s: waits for a slot of the provisioning limit", ironic.NodeLabel(m.node))
	var once sync.Once
	timer := time.AfterFunc(queuedAfter, func() { once.Do(func() { tell(text) }) })
	return func() {
		timer.Stop()
		once.Do(func() {})
	}
}

// stillFor is how long a machine may stay as it is before the log says what it waits for. After each such line the time doubles.
const stillFor = 30 * time.Second

// stillLog tells what machines wait for that do not move, once for all records of a machine. It is safe for concurrent use.
type stillLog struct {
	mu   sync.Mutex
	last map[string]still
}

func stillsOf(site *Site) *stillLog {
	return Kept(site, func(*Site) *stillLog { return &stillLog{last: map[string]still{}} })
}

// still is since when a machine is as it is, and when the log is to tell that next.
type still struct {
	as         string
	since, due time.Time
	polled     time.Time
}

// poll records a poll of a machine. It returns since when the machine is as it is, and false unless that is to be told now. A machine
// that nothing has polled for longer than stillFor begins anew, because polls come at least that often while something waits.
func (l *stillLog) poll(n *ironic.Node, interval time.Duration) (since time.Time, due bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	as, now := n.ProvisionState+" "+n.TargetPowerState+" "+states.StepName(n.DeployStep), time.Now()
	s, known := l.last[n.UUID]
	if !known || s.as != as || now.Sub(s.polled) > 2*max(interval, stillFor) {
		s = still{as: as, since: now, due: now.Add(stillFor)}
	}
	early := time.Duration(0)
	if s.due.Sub(s.since) == stillFor { // the next poll would be too late
		early = min(interval, stillFor/3)
	}
	for ; !now.Add(early).Before(s.due); due = true {
		s.due = s.since.Add(2 * s.due.Sub(s.since))
	}
	s.polled = now
	l.last[n.UUID] = s
	return s.since, due
}

// logStill logs what the machine waits for, if it has not moved for a while.
func (m *Machine) logStill(ctx context.Context) {
	if since, due := stillsOf(m.site).poll(m.node, m.site.Ironic.PollInterval()); due && !m.warnAbsent(ctx, since) {
		m.logInfo(ctx, fmt.Sprintf("is still %s after %s: %s", stateOf(m.node), time.Since(since).Round(time.Second), waitsFor(m.node)),
			"state", m.node.ProvisionState)
	}
}

// warnAbsent logs what to check if Ironic waits for a ramdisk that does not report, and reports whether it did. Ironic itself gives up
// after 30 minutes by default. It reads the node, and the ports if it boots from the network.
func (m *Machine) warnAbsent(ctx context.Context, since time.Time) bool {
	if !states.AwaitsAgent(m.State()) || time.Since(since) < ramdisk.AbsentAfter {
		return false
	}
	n, err := m.site.Ironic.Node(ctx, m.node.UUID)
	if err != nil || n.ProvisionState != m.node.ProvisionState || ramdisk.BootsFromPort(n.BootInterface) && m.lookUpMACs(ctx) != nil {
		return false
	}
	absent := ramdisk.Absence(n, m.site.Ironic.ServerNow())
	if absent == "" {
		return false
	}
	m.site.Ironic.Logger().WarnContext(ctx, fmt.Sprintf("machine %s %s. %s", ironic.NodeLabel(n), absent, ramdisk.CheckBoot(n, m.macs)),
		append(NodeAttributes(n), "state", n.ProvisionState)...)
	return true
}

func (m *Machine) lookUpMACs(ctx context.Context) error {
	ports, err := m.site.Ironic.PortsForRefresh(ctx, m.node.UUID)
	if err != nil {
		return err
	}
	m.macs = nil
	for _, mac := range ironic.Addresses(ports) {
		if ports[mac].PXEEnabled {
			m.macs = append(m.macs, mac)
		}
	}
	return nil
}

// stateOf describes what a machine does: its power change, or its provision state.
func stateOf(n *ironic.Node) string {
	if n.TargetPowerState != "" {
		return fmt.Sprintf("%s, changing to %s", cmp.Or(n.PowerState, "of unknown power"), n.TargetPowerState)
	}
	return n.ProvisionState
}

// waitsFor says what keeps a machine from moving, as far as the node tells.
func waitsFor(n *ironic.Node) string {
	state := ironic.State(n.ProvisionState)
	switch step := states.StepName(n.DeployStep); {
	case states.AwaitsAgent(state):
		return "Ironic waits for its ramdisk to report"
	case n.Reservation != "" && step != "":
		return fmt.Sprintf("conductor %s works on deploy step %s", n.Reservation, step)
	case n.Reservation != "":
		return fmt.Sprintf("conductor %s works on it", n.Reservation)
	case states.IsStuck(n):
		return "no conductor works on it any more: " + api.FirstLine(n.LastError)
	case states.InProgress(state):
		return "Ironic works on it"
	}
	return "the provider waits until it can go on"
}
