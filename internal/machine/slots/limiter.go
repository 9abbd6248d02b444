// Package slots applies the provisioning limit of package throttle to an Ironic: it counts the machines with an operation in progress from
// Ironic's states, and keeps the lock records of all runs in Ironic.
package slots

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gophercloud/gophercloud/v2/openstack/baremetal/v1/nodes"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/routine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/states"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/throttle"
)

// Limiter is the provisioning limit of an Ironic, with its locks. All verbs that make a machine boot or write pass through it.
type Limiter struct {
	*throttle.Limiter
	Locks   *throttle.Locks
	client  *ironic.Client
	limit   throttle.Limit
	refused sync.Map // recordKind -> refusal of its list
}

// NewLimiter returns the limit of a run.
func NewLimiter(client *ironic.Client, limit throttle.Limit, run string) *Limiter {
	site := &limited{c: client, run: run}
	return &Limiter{
		Limiter: throttle.New(run, limit, site, client.PollInterval()), Locks: throttle.NewLocks(site),
		client: client, limit: limit,
	}
}

// OthersAtWork reports whether other runs have operations in progress on the nodes of a list.
func (l *Limiter) OthersAtWork(fleet map[string]*ironic.Node) bool {
	return l.UsageOf(machinesOf(fleet)).Others > 0
}

// Moved says that a poll has shown a node that this process works on. The slot of a node whose operation has ended goes to a waiting one at
// once.
func (l *Limiter) Moved(before, now *ironic.Node) {
	if MachineOf(before).Busy && !MachineOf(now).Busy {
		l.Freed()
	}
}

// Pass calls send when there is a slot for the node, like throttle.Limiter.Admit. seen is the node in the list that was taken
// under the limit's lock; it has the fields of polls and replaces the fresh read before the verb. seen is nil if there is no limit
// or no lock, if the node is exempt or already busy, or if it came after the list had begun.
func (l *Limiter) Pass(ctx context.Context, node *ironic.Node, failures int,
	send func(ctx context.Context, seen *ironic.Node) error,
) error {
	if err := l.Requires(ctx); err != nil {
		return err
	}
	return l.Admit(ctx, MachineOf(node), failures, withNode(send))
}

// PassStart is Pass for a power verb that starts a machine, such as "power on" or "rebooting". The node takes a slot while
// target_power_state is set. The caller that waits for the end of the power change then calls Started, which keeps the slot for
// another 30 s.
func (l *Limiter) PassStart(ctx context.Context, node *ironic.Node, failures int,
	send func(ctx context.Context, seen *ironic.Node) error,
) error {
	if err := l.Requires(ctx); err != nil {
		return err
	}
	return l.AdmitStart(ctx, MachineOf(node), failures, withNode(send))
}

func withNode(send func(ctx context.Context, seen *ironic.Node) error) throttle.Send {
	return func(ctx context.Context, seen *throttle.Machine) error {
		if seen == nil {
			return send(ctx, nil)
		}
		node, _ := seen.Source.(*ironic.Node) // set by MachineOf
		return send(ctx, node)
	}
}

// Requires returns an error if this Ironic is too old for the scope of the limit. See ironic.Client.Requires.
func (l *Limiter) Requires(ctx context.Context) error {
	if l.limit.Max == 0 || l.limit.Scope != throttle.ScopeShard {
		return nil
	}
	return l.client.Requires(ctx, api.VersionShard, "provisioning_limit.scope=shard")
}

// MachineOf converts a node for the limit. A node that Ironic has put into maintenance after a fault is not busy, unless a conductor still
// works on it: without one, Ironic hears its ramdisk no more, and no time-out ends its state.
func MachineOf(node *ironic.Node) throttle.Machine {
	faulty := node.Maintenance && node.Fault != "" && node.Reservation == ""
	return throttle.Machine{
		ID: node.UUID, Name: node.Name, Label: ironic.NodeLabel(node), State: node.ProvisionState, Since: node.ProvisionUpdatedAt,
		LastError:      api.FirstLine(node.LastError),
		Busy:           states.Has(ironic.State(node.ProvisionState), states.Busy) && !faulty,
		Starting:       node.TargetPowerState == string(nodes.PowerOn) && !faulty,
		ConductorGroup: node.ConductorGroup, Shard: node.Shard, BootInterface: node.BootInterface,
		Source: node,
	}
}

func machinesOf(fleet map[string]*ironic.Node) []throttle.Machine {
	machines := make([]throttle.Machine, 0, len(fleet))
	for _, node := range fleet {
		machines = append(machines, MachineOf(node))
	}
	return machines
}

type limited struct {
	c         *ironic.Client
	run       string
	noChassis atomic.Bool // this user may not create a chassis: see recordKind
	at        string      // path of the only record, whose name is not known; "": by names

	seesNoChassis atomic.Bool // this user may not even see one
}

// Machines lists all nodes now.
func (s *limited) Machines(ctx context.Context) ([]throttle.Machine, error) {
	fleet, err := s.c.ShortNodes(ctx)
	return machinesOf(fleet), err
}

// NextMachines waits for the next poll of all nodes.
func (s *limited) NextMachines(ctx context.Context) ([]throttle.Machine, error) {
	fleet, err := s.c.PollNodes(ctx)
	return machinesOf(fleet), err
}

// Now returns the time of Ironic's clock.
func (s *limited) Now() time.Time { return s.c.ServerNow() }

// AnswersTake returns how long the slowest of Ironic's recent answers took.
func (s *limited) AnswersTake() time.Duration { return s.c.AnswersTake() }

// Partial reports whether the user may be unable to see some nodes of the site.
func (s *limited) Partial() bool { return s.c.Project() != "" }

// Refused reports whether Ironic refused a verb because of its own limit.
func (s *limited) Refused(err error) bool { return IsCapacityError(err) }

// MayPass reports whether a failed request may succeed later. After a panic in a poll, the other callers continue.
func (s *limited) MayPass(err error) bool {
	return api.MayPass(err) || routine.Is(err)
}

// Log writes a log line without secrets.
func (s *limited) Log(ctx context.Context, level slog.Level, text string, args ...any) {
	for i, arg := range args {
		if err, isError := arg.(error); isError {
			args[i] = s.c.Redact(err.Error())
		}
	}
	s.c.Logger().Log(ctx, level, text, args...)
}

// MachinesOf converts nodes for the limit.
func MachinesOf(fleet []ironic.Node) []throttle.Machine {
	machines := make([]throttle.Machine, len(fleet))
	for i := range fleet {
		machines[i] = MachineOf(&fleet[i])
	}
	return machines
}

// UsedBy returns how many of the given nodes take a slot, by scope.
func (l *Limiter) UsedBy(fleet []ironic.Node) map[string]int { return l.UsedOf(MachinesOf(fleet)) }

// Capacity counts how the nodes of a site are used.
type Capacity struct {
	throttle.Usage
	Classes map[string]ClassCapacity
}

// ClassCapacity counts the nodes of a resource class.
type ClassCapacity struct{ Total, Available, Allocated, Maintenance, Failed int }

// CapacityOf counts the given nodes.
func (l *Limiter) CapacityOf(fleet []ironic.Node) Capacity {
	classes := map[string]ClassCapacity{}
	for i := range fleet {
		class := classes[fleet[i].ResourceClass]
		class.add(&fleet[i])
		classes[fleet[i].ResourceClass] = class
	}
	return Capacity{l.UsageOf(MachinesOf(fleet)), classes}
}

func (k *ClassCapacity) add(node *ironic.Node) {
	k.Total++
	switch {
	case node.Maintenance:
		k.Maintenance++
	case states.Failed(ironic.State(node.ProvisionState)):
		k.Failed++
	case states.Deployed(node):
		k.Allocated++
	case ironic.State(node.ProvisionState) == nodes.Available:
		k.Available++
	}
}

// IsCapacityError reports whether Ironic refuses a verb because its own limit of concurrent operations is reached.
func IsCapacityError(err error) bool {
	var status *api.StatusError
	return errors.As(err, &status) && api.IsCapacity(status.Message)
}
