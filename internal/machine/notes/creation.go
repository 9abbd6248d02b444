package notes

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/clock"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/rest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/failure"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/throttle"
)

// doneAge is how long a finished creation may still be taken over. Terraform saves the state of finished calls to a remote backend
// only every 20 s, so a killed run may have created more than its state says.
const doneAge = 15 * time.Minute

// MarkAge is how long a creation may be taken over, also if it was not finished. An older mark tells too little about the object as it is
// now.
const MarkAge = 24 * time.Hour

// TakeOverWait is how long a run waits for another one that takes over the same creation.
const TakeOverWait = 2 * time.Minute

// Mark is the key of a mark in extra.
type Mark string

// The marks of creation.
const (
	// MarkCreation is the mark of a node or an allocation.
	MarkCreation Mark = "terraform_metal_creation"
	// MarkReservation is the mark of a node that is reserved for a deployment without an allocation.
	MarkReservation Mark = "terraform_metal_reservation"
)

// All are the marks of nodes.
var All = []Mark{MarkCreation, MarkReservation}

// Creation is the mark that a run leaves on what it creates: a node, an allocation, or the reservation of a node. The mark tells
// the next run what a killed run has begun. Ironic stores it in extra, as an object with the run as its only key: a patch that
// replaces this key fails if another run has taken the creation over (reference/ironic.md#patching-a-node).
type Creation struct {
	Run      string    `json:"-"`
	Since    time.Time `json:"since"`
	Done     time.Time `json:"done,omitzero"`      // when the run finished; zero before
	Instance string    `json:"instance,omitempty"` // of a reservation: the instance UUID
	Origin   string    `json:"origin,omitempty"`   // of a reservation without an allocation: what the instance UUID was made from
	Group    string    `json:"group,omitempty"`    // of a member of a group of allocations: the name of the group
}

// String names the run and its start.
func (c *Creation) String() string {
	return fmt.Sprintf("run %s, which began at %s", c.Run, c.Since.UTC().Format(time.RFC3339))
}

// CreationOf returns the mark under a key of extra; nil if there is none, or if no run can have written it.
func CreationOf(extra map[string]any, key Mark) *Creation {
	runs := Read[map[string]Creation](extra, string(key))
	if runs == nil || len(*runs) != 1 {
		return nil
	}
	for run, mark := range *runs {
		if mark.Run = run; ironic.IsUUID(run) && !mark.Since.IsZero() {
			return &mark
		}
	}
	return nil
}

// IsMark reports whether a path of a patch is that of a mark or of its run.
func IsMark(path string) bool {
	return slices.ContainsFunc(All, func(key Mark) bool { return strings.HasPrefix(path+"/", "/extra/"+string(key)+"/") })
}

// Value returns the mark as it is stored under its key of extra.
func (c *Creation) Value() map[string]any { return map[string]any{c.Run: c} }

// Path is where extra has the mark of a run.
func (c *Creation) Path(key Mark) string { return "/extra/" + string(key) + "/" + c.Run }

// Run is a run of this provider, as far as its marks need it. It is safe for concurrent use.
type Run struct {
	ID        string    // identifies the run in its marks
	started   time.Time // by the local clock
	client    *ironic.Client
	locks     *throttle.Locks
	takenOver Set[taken] // what creations of this run have taken over
	announced Set[taken] // the take-overs that the user was told of
}

// taken is what a creation has taken over: the object with a mark.
type taken struct {
	key Mark
	id  string
}

// NewRun returns a run that begins now.
func NewRun(id string, client *ironic.Client, locks *throttle.Locks) *Run {
	return &Run{ID: id, started: time.Now(), client: client, locks: locks}
}

// Begun returns the mark of a creation that this run begins now.
func (r *Run) Begun() *Creation { return &Creation{Run: r.ID, Since: r.client.ServerNow().UTC()} }

// IsDead reports whether a mark is of another run that was killed before this one started. A run that has begun or finished a
// creation since then is alive: Terraform lets only one run at a time work on a state.
func (r *Run) IsDead(mark *Creation) bool {
	return mark != nil && mark.Run != r.ID && mark.Since.Before(r.Started()) && !mark.Done.After(r.Started())
}

// Unfinished reports whether this run may take over the creation of a node, or of something on it: the run of the mark was killed
// before Terraform had saved what it created, and not too long ago. extra is that of the node.
func (r *Run) Unfinished(mark *Creation, extra map[string]any) bool {
	return r.IsLeft(mark, extra) && r.IsRecent(mark)
}

// IsLeft is Unfinished for a mark of any age. If the killed run has not finished its deployment of the node, the age of what it had
// finished before does not matter: Terraform may save nothing while a deployment is in progress.
func (r *Run) IsLeft(mark *Creation, extra map[string]any) bool {
	if !r.IsDead(mark) {
		return false
	}
	if mark.Done.IsZero() || clock.IsYoung(mark.Done, r.client.ServerNow(), doneAge) {
		return true
	}
	deployment := CreationOf(extra, MarkReservation)
	return deployment != nil && deployment.Run == mark.Run && deployment.Done.IsZero()
}

// IsRecent reports whether a creation began so recently, by the server's clock, that it may be taken over.
func (r *Run) IsRecent(mark *Creation) bool {
	return mark != nil && clock.IsYoung(mark.Since, r.client.ServerNow(), MarkAge)
}

// IsPast reports whether a mark has not a time that is still to come, which no run has written.
func (r *Run) IsPast(mark *Creation) bool {
	return !mark.Since.After(r.client.ServerNow().Add(clock.Slack))
}

// Started returns when this run began, by the server's clock.
func (r *Run) Started() time.Time { return r.client.ServerNow().Add(-time.Since(r.started)) }

// KindSuperseded is the kind of an error which says that another run has taken over a creation of this run, because it took this run for
// dead.
const KindSuperseded failure.Kind = "superseded"

func supersededBy(by *Creation, what string) *failure.Error {
	return &failure.Error{
		Kind: KindSuperseded, Fact: fmt.Sprintf("%s took over the creation of %s", by, what),
		Advice: "This run stopped and has removed the resource from its state, because the other run manages it now. If two " +
			"configurations create the same resource, remove it from one of them. If no other run manages it, import it: what was " +
			"created is still there.",
	}
}

// Superseded returns an error of KindSuperseded if extra has the mark of another run that takes over what this one creates, so after this
// one has begun.
func (r *Run) Superseded(what string, extra map[string]any, key Mark) error {
	if mark := CreationOf(extra, key); mark != nil && mark.Run != r.ID && !mark.Since.Before(r.Started().Add(-clock.Slack)) &&
		r.IsPast(mark) {
		return supersededBy(mark, what)
	}
	return nil
}

// EndCreation records in the mark of an object that is not a node that its creation has ended. failed is why it has failed; nil if it has
// not. extra is that of the object as last seen; read reads it again, and write sends a patch of the object.
func (r *Run) EndCreation(ctx context.Context, label string, extra map[string]any, failed error,
	read func(context.Context) (map[string]any, error), write func(context.Context, ironic.Patch) error,
) error {
	ctx, stop := rest.Outlast(ctx)
	defer stop()
	check := func() error {
		now, err := read(ctx)
		if err != nil {
			return nil //nolint:nilerr // it is gone, or Ironic does not answer
		}
		return r.Superseded(label, now, MarkCreation)
	}
	if failed != nil {
		if lost := check(); lost != nil {
			return lost
		}
	}
	mark := CreationOf(extra, MarkCreation)
	if mark == nil || mark.Run != r.ID {
		return failed
	}
	err := write(ctx, r.Ended(mark, MarkCreation))
	if err == nil {
		return failed
	}
	if lost := check(); lost != nil {
		return lost
	}
	r.client.Logger().WarnContext(ctx, "could not record that a creation is finished", "object", label, "error", err)
	return failed
}

// Ended returns the edit that records the end of a creation of this run. Ironic refuses it if another run has taken the creation over.
func (r *Run) Ended(mark *Creation, key Mark) (patch ironic.Patch) {
	now := *mark
	now.Done = r.client.ServerNow().UTC()
	patch.Replace(mark.Path(key), now)
	return patch
}

// ForgetCreations adds to a patch that is sent anyway the removal of marks that no run needs any more.
func (r *Run) ForgetCreations(patch ironic.Patch, extra map[string]any) ironic.Patch {
	for _, key := range All {
		mark := CreationOf(extra, key)
		if r.IsDead(mark) && !r.Unfinished(mark, extra) && !patch.Changes("/extra/"+string(key)) {
			patch.Remove("/extra/" + string(key))
		}
	}
	return patch
}

// TakesOver adds to a patch of a discovered node the mark that this run creates a host of it.
func (r *Run) TakesOver(patch *ironic.Patch, n *ironic.Node) {
	if mark := CreationOf(n.Extra, MarkCreation); mark == nil || mark.Run != r.ID {
		patch.Set("/extra/"+string(MarkCreation), r.Begun().Value())
	}
}

// HasTakenOver reports whether a creation of this run has taken over a node, an allocation, or the reservation of a node. The
// deletion of the resource that had it before must then leave it alone. Terraform creates before it deletes if the configuration
// says so, or if the address of the resource has changed.
func (r *Run) HasTakenOver(key Mark, id string) bool {
	return r.takenOver.Has(taken{key, id})
}

// TookOver records that a creation of this run has taken something over.
func (r *Run) TookOver(key Mark, id string) { r.takenOver.Add(taken{key, id}) }

// Announce reports whether it is called for the first time in this run for what is taken over: a node by a host, or the reservation of a
// node by a deployment. Terraform plans again during the apply, and shows the warnings of that plan: what it has announced, the creation
// need not repeat.
func (r *Run) Announce(what Mark, id string) bool { return r.announced.Add(taken{what, id}) }

// Finishing takes over the creation of an object: it replaces the mark of a killed run by one of this run. read reads the object's
// mark and fails if this run may not take the creation over; write sends a patch of the object. Of several runs that try, one
// succeeds at a time, because they share a lock record in Ironic; the patch is refused if the mark has changed.
func (r *Run) Finishing(ctx context.Context, id string, key Mark, read func(context.Context) (*Creation, error),
	write func(context.Context, ironic.Patch) error,
) (*Creation, error) {
	taken := taken{key, id}
	if !r.takenOver.Add(taken) {
		return nil, errOurs
	}
	var mark *Creation
	lock := throttle.Lock{
		Name: "creation:" + id, Description: "terraform-provider-metal: a run takes over a creation, which takes seconds",
		For: "take over the creation of " + id, Wait: TakeOverWait,
	}
	err := r.locks.With(ctx, lock, func(ctx context.Context) (err error) {
		if mark, err = read(ctx); err != nil {
			return err
		}
		mine := r.Begun()
		mine.Instance, mine.Origin, mine.Group = mark.Instance, mark.Origin, mark.Group
		var patch ironic.Patch
		patch.Replace(mark.Path(key), mark)
		patch.Set("/extra/"+string(key), mine.Value())
		err = write(ctx, patch)
		if !api.IsStatus(err, http.StatusBadRequest, "") {
			return err
		}
		switch now, again := read(ctx); { // the answer may be that to a repeated request
		case errors.Is(again, errOurs):
			return nil
		case again != nil:
			return again
		case now.Run != mark.Run:
			return ErrTakenOver
		}
		return err
	})
	if err != nil {
		r.takenOver.Remove(taken)
	}
	return mark, err
}

// Why a creation cannot be taken over.
var (
	ErrTakenOver = errors.New("another run has taken over the creation")
	errOurs      = errors.New("another resource of this configuration has taken it over. Two resources describe the same object: " +
		"remove one of them")
)

// RefuseTakeOver returns why the creation with a mark cannot be taken over.
func (r *Run) RefuseTakeOver(mark *Creation) error {
	if mark != nil && mark.Run == r.ID {
		return errOurs
	}
	return ErrTakenOver
}

// IsSuperseded reports whether err is an error of KindSuperseded.
func IsSuperseded(err error) bool { return failure.Is(err, KindSuperseded) }

func sayCreation(n *ironic.Node, _ time.Time) Words {
	return sayMark(n.Extra, MarkCreation, "creation of the host", "the creation of its host")
}

func sayReservation(n *ironic.Node, _ time.Time) Words {
	return sayMark(n.Extra, MarkReservation, "reservation of the machine", "its deployment")
}

// OfAllocation returns what the mark of creation says on an allocation at a time.
func OfAllocation(a *ironic.Allocation, now time.Time) Words {
	return sayMark(a.Extra, MarkCreation, "creation of the allocation", "its creation").
		heard(string(MarkCreation), "allocation unset "+a.UUID, now)
}

// sayMark tells of a creation by a run: what it created, and what the run has not finished if it has not.
func sayMark(extra map[string]any, key Mark, what, unfinished string) (w Words) {
	mark := CreationOf(extra, key)
	if mark == nil {
		return w
	}
	if mark.Done.IsZero() {
		what += "; its end is not noted"
		w.Left = &Left{Text: fmt.Sprintf("%s by %s is not finished", unfinished, mark), Run: mark.Run, Since: mark.Since}
	}
	w.Told = []Note{{At: mark.Since, Until: mark.Done, Text: what, By: "run " + mark.Run}}
	return w
}
