package machine

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/failure"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ramdisk"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/states"
)

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
	if due = now.Add(min(interval, stillFor/3)).After(s.due); due { // the next poll would be too late
		s.due = now.Add(now.Sub(s.since))
	}
	s.polled = now
	l.last[n.UUID] = s
	return s.since, due
}

// logStill logs what the machine waits for, if it has not moved for a while.
func (m *Machine) logStill(ctx context.Context) {
	if since, due := stillsOf(m.site).poll(m.node, m.site.Ironic.PollInterval()); due && !m.warnAbsent(ctx, since) {
		m.logInfo(ctx, fmt.Sprintf("is still %s after %s: %s", stateOf(m.node), time.Since(since).Round(time.Second), waitsFor(m.node)), "state", m.node.ProvisionState)
	}
}

// warnAbsent logs what to check if Ironic waits for a ramdisk that does not report, and reports whether it did. Ironic itself gives up after
// 30 minutes by default. It reads the node, and the ports if it boots from the network.
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
	m.site.Ironic.Logger().WarnContext(ctx, fmt.Sprintf("machine %s %s. %s", ironic.NodeLabel(n), absent, ramdisk.CheckBoot(n, m.macs)), append(NodeAttributes(n), "state", n.ProvisionState)...)
	return true
}

// lookUpMACs reads the MAC addresses from which the machine may boot.
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

// stuckFor is how long an operation without a conductor may last, by the polls of one walk.
const stuckFor = 2 * time.Minute

// KindStuck is the kind of an error which says that a node is in the middle of an operation on which no conductor works, so that waiting is in vain.
const KindStuck failure.Kind = "stuck"

func stuckError(node *ironic.Node) *failure.Error {
	return &failure.Error{
		Kind: KindStuck, Node: node, Fact: fmt.Sprintf("node %s is in state %q, but no conductor works on it any more", ironic.NodeLabel(node), node.ProvisionState), Words: api.FirstLine(node.LastError),
		Advice: "Ironic does not end this operation by itself. A conductor that is restarted lets it fail; then apply again. See the conductor's log for the cause.",
	}
}
