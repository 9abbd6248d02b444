package doctor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/routine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/evidence"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/failure"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/slots"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/states"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/oneview"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/oneview/sharing"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/throttle"
)

// answer is what a question to the site has brought.
type answer[T any] struct {
	value T
	err   error // why there is none
}

// ask returns a function that asks for the value. A panic is why there is none.
func (a *answer[T]) ask(do func() (T, error)) func() error {
	return func() error {
		defer routine.Recover(&a.err)
		a.value, a.err = do()
		return nil
	}
}

// sight is what the site has answered.
type sight struct {
	o   Options
	now time.Time // by Ironic's clock

	endpoint     string // Ironic's URL
	connect      error  // why Ironic could not be asked; nil if it could
	versionless  error  // why not even its version could be read, which needs no credentials
	server, used api.Microversion
	apart        time.Duration // how far the clocks of API services differ, at least
	ahead        time.Duration // how far Ironic's clock is ahead of ours; differences of up to 2 s count as none
	who          *api.Identity // nil without Keystone
	late         bool          // the time for all checks was over before the last answer

	nodes       answer[[]ironic.Node]
	evidence    map[string][]string // about failures, by UUID of the node
	allocations answer[[]ironic.Allocation]
	conductors  answer[[]ironic.Conductor]
	drivers     answer[[]ironic.Driver]
	records     answer[[]slots.Found]
	freeze      *throttle.Freeze
	limitless   error // why this Ironic cannot have the limit
	temporaries answer[[]oneview.Profile]
	removed     map[string]error // by object: the stale records that were to be deleted, and why one is still there
	rights      []scope
	image       *imageServer // nil: the user has named none
}

// nodeFields are the fields of nodes that the checks need. Lists with fields cannot have created_at, conductor and allocation_uuid.
var nodeFields = []string{
	"uuid", "name", "provision_state", "target_provision_state", "power_state", "target_power_state", "provision_updated_at", "maintenance",
	"maintenance_reason",
	"fault", "last_error", "reservation", "instance_uuid", "instance_info", "driver", "bios_interface", "boot_interface",
	"console_interface", "deploy_interface",
	"inspect_interface", "management_interface", "network_interface", "power_interface", "raid_interface", "rescue_interface",
	"storage_interface",
	"vendor_interface", "conductor_group", "retired", "retired_reason", "extra", "console_enabled", "driver_info",
	"parent_node", "firmware_interface", "shard", "health",
}

// errNoIronic is why what only Ironic knows is not known if it could not be asked.
var errNoIronic = errors.New("Ironic could not be asked") //nolint:staticcheck // a name

// look asks the site until ctx ends, and removes records until whole does. With a thousand nodes it sends about twenty requests, and at
// most four for each of the first failed machines.
func look(ctx, whole context.Context, o Options) *sight {
	site := machine.New(o.Site)
	client := site.Ironic
	s := &sight{o: o}
	if o.Image != "" {
		s.image = lookAtImage(ctx, o)
	}
	s.reach(ctx, client)
	if s.connect != nil {
		for _, err := range []*error{&s.nodes.err, &s.allocations.err, &s.conductors.err, &s.drivers.err, &s.records.err} {
			*err = errNoIronic
		}
		s.late = ctx.Err() != nil
		return s
	}
	asking := []func() error{
		s.nodes.ask(func() ([]ironic.Node, error) { return client.ListNodeFields(ctx, ironic.NodeFilter{}, nodeFields) }),
		s.allocations.ask(func() ([]ironic.Allocation, error) { return client.ListAllocations(ctx, nil) }),
		s.conductors.ask(func() ([]ironic.Conductor, error) { return client.Conductors(ctx) }),
		s.drivers.ask(func() ([]ironic.Driver, error) { return client.Drivers(ctx) }),
		func() error { s.freeze = site.Freezes().Now(ctx); return nil },
		s.records.ask(func() ([]slots.Found, error) { return slots.Find(ctx, client) }),
		func() (err error) {
			defer routine.Recover(&s.limitless)
			s.limitless = slots.NewLimiter(client, o.Limit, "").Requires(ctx)
			return nil
		},
	}
	if o.OneView != nil {
		asking = append(asking, s.temporaries.ask(func() ([]oneview.Profile, error) { return sharing.ListTemporaries(ctx, o.OneView) }))
	}
	// together, so that a request that hangs takes no time from others
	routine.Each(len(asking), len(asking), func(i int) error { return asking[i]() })
	s.findAllocations()
	s.lookIntoFailures(ctx, client)
	s.now, s.ahead, s.apart = client.ServerNow(), client.Ahead(), client.Apart()
	s.rights = lookAtRights(ctx, client, s.who, s.nodes.value)
	s.late = ctx.Err() != nil
	if o.RemoveStale {
		s.removed = removeStale(whole, client, s.records.value)
	}
	return s
}

// reach connects to Ironic. If Keystone gives no token, it asks a configured endpoint for its version, which needs none.
func (s *sight) reach(ctx context.Context, client *ironic.Client) {
	s.endpoint = s.o.Site.Endpoint
	service, err := client.Service(ctx)
	if s.connect, s.versionless = err, err; err == nil {
		s.endpoint, s.who = service.Endpoint, client.Identity()
		s.server, _ = client.Highest(ctx) // it is connected
		s.used, _ = client.Microversion(ctx)
		return
	}
	if s.o.Site.Endpoint == "" || api.StageOf(err) != api.AtKeystone {
		return
	}
	plain := s.o.Site.Config
	plain.Auth = api.AuthNone
	conn := api.New(plain)
	if s.server, s.versionless = conn.Highest(ctx); s.versionless == nil {
		s.used, _ = conn.Microversion(ctx)
	}
}

// lookIntoFailures completes the last errors of failed machines from their history, and looks up what explains them.
func (s *sight) lookIntoFailures(ctx context.Context, client *ironic.Client) {
	var failed []*ironic.Node
	for i := range s.nodes.value {
		if n := &s.nodes.value[i]; states.OperationFailed(n) && len(failed) < most {
			failed = append(failed, n)
		}
	}
	facts := make([][]string, len(failed))
	routine.Each(len(failed), atOnce, func(i int) error {
		n := failed[i]
		if n.LastError == "" {
			n.LastError = evidence.LastError(ctx, client, n.UUID)
		}
		facts[i] = evidence.Look{Ironic: client}.Of(ctx, n, machine.Why(n))
		return nil
	})
	s.evidence = map[string][]string{}
	for i, n := range failed {
		s.evidence[n.UUID] = facts[i]
	}
}

// atOnce is how many failures are looked into at once.
const atOnce = 4

// findAllocations sets allocation_uuid of the nodes, which is their instance UUID if an allocation has reserved them. A user who may not
// see all allocations is told of one in any case: metal release says if there is none.
func (s *sight) findAllocations() {
	all := s.allocations.err == nil && (s.who == nil || s.who.Project == "")
	known := ironic.ByUUID(s.allocations.value, func(a *ironic.Allocation) string { return a.UUID })
	for i := range s.nodes.value {
		if n := &s.nodes.value[i]; !all || known[n.InstanceUUID] != nil {
			n.AllocationUUID = n.InstanceUUID
		}
	}
}

// unknown is the result of a check for which the site has not answered.
func (s *sight) unknown(name string, err error) Check {
	if errors.Is(err, errNoIronic) {
		return Check{Name: name, Result: Unknown, Fact: errNoIronic.Error() + ": see the checks above."}
	}
	if s.late && errors.Is(err, context.DeadlineExceeded) {
		return Check{Name: name, Result: Unknown, Fact: "The time for all checks was over.", Next: "Raise --timeout."}
	}
	return Check{Name: name, Result: Unknown, Fact: failure.Sentence(err), Next: failure.Advise(err)}
}

// most is how many objects of a kind a check names.
const most = 20

// fold returns at most as many details as a check names, and says how many there are besides.
func fold(details []string) []string {
	if len(details) <= most {
		return details
	}
	return append(details[:most:most], fmt.Sprintf("and %d more", len(details)-most))
}
