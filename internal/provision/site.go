package provision

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gophercloud/gophercloud/v2/openstack/baremetal/v1/nodes"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/throttle"
)

// Config is what a Site needs beyond its client.
type Config struct {
	ironic.Config
	Limit  throttle.Limit    // how many machines may have an operation in progress at once
	Images http.RoundTripper // for requests to the servers of live ISOs and images; nil: http.DefaultTransport, without the client's settings
	Guard  Guard             // decides about operations on machines; nil: everything is allowed
}

// Site is an Ironic with its machines, and what the run knows about them. It is safe for concurrent use. A process should use one
// Site for everything, because the provisioning limit applies per Site.
type Site struct {
	*ironic.Client
	cfg     Config
	limiter *limiter
	locks   *throttle.Locks
	images  images
	heads   heads
	catalog *catalog
	stock   *stock
	guard   Guard
	states  stateLog
	stills  stillLog

	expected  expected
	noChassis atomic.Bool // this user may not create a chassis: see recordKind
	drivers   struct {
		asking  chan struct{}   // has room for one, who may use enabled
		enabled []ironic.Driver // nil: not asked for
	}
	refusals refusals

	left    leftovers
	run     string    // identifies this run in the marks of its creations
	started time.Time // by the local clock

	deployments sync.Map // the nodes whose deployments Terraform has in state, as far as it has refreshed them
	planned     sync.Map // the nodes on which plans of this run create deployments
	made        sync.Map // the instance UUIDs with which this run reserves nodes for deployments
	hosts       sync.Map // the nodes whose hosts Terraform has in state, likewise
	announced   sync.Map // the take-overs that the user was told of, as Announce names them
	takenOver   sync.Map // what creations of this run have taken over, as HasTakenOver names it
	lost        sync.Map // by UUID of the node, the losses that this run has noted
	rules       sync.Map // UUIDs of the inspection rules that this run has created
	held        sync.Map // by UUID, the allocations that this run changes or creates again, and the machines that actions operate: channels with room for one holder
}

// New returns a Site. It makes no request.
func New(cfg Config) *Site {
	if cfg.Limit.Max > 0 && cfg.Limit.Scope == throttle.ScopeShard {
		cfg.PollFields = append(cfg.PollFields, "shard")
	}
	c := &Site{cfg: cfg, guard: cfg.Guard, run: ironic.NewUUID(), started: time.Now()}
	if c.guard == nil {
		c.guard = allowAll{}
	}
	cfg.OthersAtWork = func(fleet map[string]*ironic.Node) bool { return c.limiter.UsageOf(machinesOf(fleet)).Others > 0 }
	c.Client = ironic.New(cfg.Config)
	c.limiter, c.locks = newLimiter(c), throttle.NewLocks(limited{c})
	c.catalog = newCatalog(c.Client)
	c.stock = newStock()
	c.drivers.asking = make(chan struct{}, 1)
	c.refusals = refusals{turn: make(chan struct{}, 1), refused: make(map[relation]bool)}
	return c
}

// Guard decides whether this process may operate on a machine. Every operation of this package asks it.
type Guard interface {
	// Check returns an error if the step is not allowed. The step is then not taken.
	Check(ctx context.Context, step Step) error
}

// Step is what is about to be done to a machine. At most one of Verb and Power is set; neither: virtual media or an NMI.
type Step struct {
	Node  *ironic.Node           // always has driver_info; the other fields may be as old as the last poll
	Verb  ironic.Verb            // changes the provision state
	Power nodes.TargetPowerState // changes the power state
	Stage Stage
	Limit time.Duration // how long the check at BeforeQueue may take; zero: the guard's own default
}

// Stage is the moment at which a Guard is asked about a step.
type Stage int

// The stages of a step, in order. Each step asks the guard at every stage that applies to it.
const (
	// BeforeWrite: before the step writes anything to the node. The check must change nothing.
	BeforeWrite Stage = iota
	// BeforeQueue: before the node waits for a slot of the provisioning limit. The check may take minutes and may prepare the
	// machine, for example with a temporary server profile.
	BeforeQueue
	// BeforeVerb: right before the request is sent, while the node has a slot. The check must end within seconds.
	BeforeVerb
)

// allowAll allows every step.
type allowAll struct{}

// Check returns nil.
func (allowAll) Check(context.Context, Step) error { return nil }

// CheckDeploy asks the site's guard whether the machine may be deployed, before anything is written for that.
func (m *Machine) CheckDeploy(ctx context.Context) error {
	verb := nodes.TargetActive
	if occupied(m.state()) {
		verb = nodes.TargetRebuild
	}
	return m.site.guard.Check(ctx, Step{Node: m.node, Verb: verb, Stage: BeforeWrite})
}
