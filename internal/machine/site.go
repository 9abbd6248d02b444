package machine

import (
	"context"
	"net/http"
	"reflect"
	"sync"
	"time"

	"github.com/gophercloud/gophercloud/v2/openstack/baremetal/v1/nodes"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/notes"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/readiness"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/slots"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/throttle"
)

// Config is what a Site needs beyond its client.
type Config struct {
	api.Config
	Limit throttle.Limit // how many machines may have an operation in progress at once
	// for requests to the servers of live ISOs and images; nil: http.DefaultTransport, without the client's settings
	Images http.RoundTripper
	Dial   readiness.Dial // for ready checks; nil: the network
	Guard  Guard          // decides about operations on machines; nil: everything is allowed
}

// Site is an Ironic with its machines. It is safe for concurrent use. A process should use one Site for everything, because the
// provisioning limit applies per Site.
type Site struct {
	Ironic  *ironic.Client // sends the requests
	Run     *notes.Run
	cfg     Config
	limiter *slots.Limiter
	guard   Guard

	mu   sync.Mutex
	kept map[reflect.Type]any // by its type: see kept
}

// New returns a Site. It makes no request.
func New(cfg Config) *Site {
	c := &Site{cfg: cfg, guard: cfg.Guard}
	if c.guard == nil {
		c.guard = allowAll{}
	}
	polls := ironic.Polls{OthersAtWork: func(fleet map[string]*ironic.Node) bool { return c.limiter.OthersAtWork(fleet) }}
	if cfg.Limit.Max > 0 && cfg.Limit.Scope == throttle.ScopeShard {
		polls.Fields = []string{"shard"}
	}
	c.Ironic = ironic.New(cfg.Config, polls)
	id := ironic.NewUUID()
	c.limiter = slots.NewLimiter(c.Ironic, cfg.Limit, id)
	c.Run = notes.NewRun(id, c.Ironic, c.limiter.Locks)
	return c
}

// Kept returns what a part of this provider knows about a site in the course of a run. The first call creates it.
func Kept[T any](site *Site, create func(*Site) *T) *T {
	site.mu.Lock()
	defer site.mu.Unlock()
	key := reflect.TypeFor[T]()
	if site.kept == nil {
		site.kept = map[reflect.Type]any{}
	}
	if site.kept[key] == nil {
		site.kept[key] = create(site)
	}
	what, _ := site.kept[key].(*T) // nothing else is stored under the key
	return what
}

// Config returns the settings of the site.
func (s *Site) Config() Config { return s.cfg }

// Locks returns the lock records that all runs on this Ironic share.
func (s *Site) Locks() *throttle.Locks { return s.limiter.Locks }

// LimitRequires returns an error if this Ironic is too old for the scope of the provisioning limit; see Requires.
func (s *Site) LimitRequires(ctx context.Context) error { return s.limiter.Requires(ctx) }

// Notices returns the new notices of the provisioning limit.
func (s *Site) Notices() []throttle.Notice { return s.limiter.Notices() }

// Say queues a notice about the run, once for each key.
func (s *Site) Say(key string, n throttle.Notice) { s.limiter.Say(key, n) }

// CapacityOf counts the given nodes.
func (s *Site) CapacityOf(fleet []ironic.Node) slots.Capacity { return s.limiter.CapacityOf(fleet) }

// holders are, by UUID, the allocations that this run changes or creates again, and the machines that actions operate.
type holders struct {
	mu  sync.Mutex
	all map[string]chan struct{} // each has room for one holder
}

func (h *holders) of(id string) chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.all[id] == nil {
		h.all[id] = make(chan struct{}, 1)
	}
	return h.all[id]
}

// Hold waits until this run neither edits an allocation nor undeploys its machine, which deletes the allocation and creates it again
// as it was, nor operates a machine by an action. The caller may do so until it calls done. waited reports that it had to wait.
func (s *Site) Hold(ctx context.Context, id string) (done func(), waited bool, err error) {
	holder := Kept(s, func(*Site) *holders { return &holders{all: map[string]chan struct{}{}} }).of(id)
	done = func() { <-holder }
	select {
	case holder <- struct{}{}:
		return done, false, nil
	default:
	}
	select {
	case holder <- struct{}{}:
		return done, true, nil
	case <-ctx.Done():
		return nil, true, ctx.Err()
	}
}

// Guard decides whether this process may operate on a machine. Every operation on a machine asks it.
type Guard interface {
	// Check returns an error if the step is not allowed. The step is then not taken.
	Check(ctx context.Context, step Step) error
}

// preparer is a Guard whose check at BeforeQueue may prepare machines. Guards that are none only look.
type preparer interface {
	// Prepares reports whether the guard may prepare the machine of a node, which has driver_info.
	Prepares(node *ironic.Node) bool
}

// prepares reports whether the guard may prepare the machine of a node before it has a slot.
func (s *Site) prepares(node *ironic.Node) bool {
	preparer, may := s.guard.(preparer)
	return may && preparer.Prepares(node)
}

// Step is what is about to be done to a machine. At most one of Verb and Power is set; neither: another request to its hardware.
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
	// BeforeQueue: before the node waits for a slot of the provisioning limit. The check may take minutes and, by a preparer, may
	// prepare the machine, for example with a temporary server profile.
	BeforeQueue
	// BeforeVerb: right before the request is sent, while the node has a slot. The check must end within seconds.
	BeforeVerb
)

type allowAll struct{}

// Check returns nil.
func (allowAll) Check(context.Context, Step) error { return nil }
