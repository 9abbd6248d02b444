package provision

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/rest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/throttle"
)

// doneAge is how long a finished creation may still be taken over. Terraform saves the state of finished calls to a remote backend
// only every 20 s, so a killed run may have created more than its state says.
const doneAge = 15 * time.Minute

// markAge is how long a creation may be taken over, also if it was not finished. An older mark tells too little about the object as it is now.
const markAge = 24 * time.Hour

// takeOverWait is how long a run waits for another one that takes over the same creation.
const takeOverWait = 2 * time.Minute

// Mark is the key of a mark in extra.
type Mark string

// The marks of creation.
const (
	// MarkCreation is the mark of a node or an allocation.
	MarkCreation Mark = "terraform_metal_creation"
	// MarkReservation is the mark of a node that is reserved for a deployment without an allocation.
	MarkReservation Mark = "terraform_metal_reservation"
)

var marks = []Mark{MarkCreation, MarkReservation}

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

// creationOf returns the mark under a key of extra; nil if there is none, or if no run can have written it.
func creationOf(extra map[string]any, key Mark) *Creation {
	text, err := json.Marshal(extra[string(key)])
	var runs map[string]Creation
	if err != nil || json.Unmarshal(text, &runs) != nil || len(runs) != 1 {
		return nil
	}
	for run, mark := range runs {
		if mark.Run = run; ironic.IsUUID(run) && !mark.Since.IsZero() {
			return &mark
		}
	}
	return nil
}

// isMark reports whether a path of a patch is that of a mark or of its run.
func isMark(path string) bool {
	return slices.ContainsFunc(marks, func(key Mark) bool { return strings.HasPrefix(path+"/", "/extra/"+string(key)+"/") })
}

// value returns the mark as it is stored under its key of extra.
func (c *Creation) value() map[string]any { return map[string]any{c.Run: c} }

// path is where extra has the mark of a run.
func (c *Creation) path(key Mark) string { return "/extra/" + string(key) + "/" + c.Run }

// begun returns the mark of a creation that this run begins now.
func (c *Site) begun() *Creation { return &Creation{Run: c.run, Since: c.ServerNow().UTC()} }

// isDead reports whether a mark is of another run that was killed before this one started. A run that has begun or finished a
// creation since then is alive: Terraform lets only one run at a time work on a state.
func (c *Site) isDead(mark *Creation) bool {
	return mark != nil && mark.Run != c.run && mark.Since.Before(c.startedAt()) && !mark.Done.After(c.startedAt())
}

// unfinished reports whether this run may take over the creation of a node, or of something on it: the run of the mark was killed
// before Terraform had saved what it created, and not too long ago. extra is that of the node.
func (c *Site) unfinished(mark *Creation, extra map[string]any) bool {
	return c.isLeft(mark, extra) && c.isRecent(mark)
}

// isLeft is unfinished at any age. If the killed run has not finished its deployment of the node, the age of what it had finished before
// does not matter: Terraform may save nothing while a deployment is in progress.
func (c *Site) isLeft(mark *Creation, extra map[string]any) bool {
	if !c.isDead(mark) {
		return false
	}
	if mark.Done.IsZero() || c.ServerNow().Sub(mark.Done) < doneAge {
		return true
	}
	deployment := creationOf(extra, MarkReservation)
	return deployment != nil && deployment.Run == mark.Run && deployment.Done.IsZero()
}

// isRecent reports whether a creation began so recently, by the server's clock, that it may be taken over.
func (c *Site) isRecent(mark *Creation) bool {
	return mark != nil && c.ServerNow().Sub(mark.Since) <= markAge
}

// isPast reports whether a mark has not a time that is still to come, which no run has written.
func (c *Site) isPast(mark *Creation) bool { return !mark.Since.After(c.ServerNow().Add(clockSlack)) }

// startedAt returns when this run began, by the server's clock.
func (c *Site) startedAt() time.Time { return c.ServerNow().Add(-time.Since(c.started)) }

// SupersededError says that another run has taken over a creation of this run, because it took this run for dead.
type SupersededError struct {
	What string    // such as "node rack1-01 (...)"
	By   *Creation // the other run
}

// Error names both.
func (e *SupersededError) Error() string {
	return fmt.Sprintf("%s took over the creation of %s", e.By, e.What)
}

func (e *SupersededError) advice() string {
	return "This run stopped and has removed the resource from its state, because the other run manages it now. If two configurations create the " +
		"same resource, remove it from one of them. If no other run manages it, import it: what was created is still there."
}

// superseded returns a SupersededError if extra has the mark of another run that takes over what this one creates, so after this one has begun.
func (c *Site) superseded(what string, extra map[string]any, key Mark) error {
	if mark := creationOf(extra, key); mark != nil && mark.Run != c.run && !mark.Since.Before(c.startedAt().Add(-clockSlack)) && c.isPast(mark) {
		return &SupersededError{What: what, By: mark}
	}
	return nil
}

// CheckCreation reads the node and returns a SupersededError if another run has taken over its creation.
func (m *Machine) CheckCreation(ctx context.Context) error {
	if err := m.Refresh(ctx); err != nil {
		return err
	}
	return m.superseded()
}

// superseded compares the marks of this run that the record began with to those of the node as last seen.
func (m *Machine) superseded() error {
	for _, key := range m.marks {
		if err := m.site.superseded("node "+ironic.NodeLabel(m.node), m.node.Extra, key); err != nil {
			return err
		}
	}
	return nil
}

// EndCreation ends a creation of this run that has succeeded, or failed with an error, which it returns. It writes into the mark that
// the run has finished, also after an interruption, and updates the record with the whole node. It returns a SupersededError instead
// if another run has taken over the creation. It does nothing if the node has no mark, or while Ironic accepts no edits. What is
// created stays good if Ironic refuses the edit, so EndCreation only logs that.
func (m *Machine) EndCreation(ctx context.Context, key Mark, failed error) error {
	if IsSuperseded(failed) {
		return failed
	}
	ctx, stop := rest.Outlast(ctx)
	defer stop()
	if failed != nil {
		_ = m.Refresh(ctx) // the record stays as it is if Ironic does not answer
	}
	if lost := m.superseded(); lost != nil {
		return lost
	}
	mark := creationOf(m.node.Extra, key)
	if mark == nil || mark.Run != m.site.run || failed != nil && inProgress(m.state()) {
		return failed
	}
	err := m.write(ctx, m.site.ended(mark, key))
	if err == nil {
		return failed
	}
	if lost := m.CheckCreation(ctx); IsSuperseded(lost) {
		return lost
	}
	m.site.Logger().WarnContext(ctx, "could not record that the creation of a node is finished", append(nodeAttributes(m.node), "error", err)...)
	return failed
}

// endCreation is EndCreation for an object that is not a node. extra is that of the object as last seen; read reads it again, and write
// sends a patch of the object.
func (c *Site) endCreation(ctx context.Context, label string, extra map[string]any, failed error, read func(context.Context) (map[string]any, error), write func(context.Context, ironic.Patch) error) error {
	ctx, stop := rest.Outlast(ctx)
	defer stop()
	check := func() error {
		now, err := read(ctx)
		if err != nil {
			return nil //nolint:nilerr // it is gone, or Ironic does not answer
		}
		return c.superseded(label, now, MarkCreation)
	}
	if failed != nil {
		if lost := check(); lost != nil {
			return lost
		}
	}
	mark := creationOf(extra, MarkCreation)
	if mark == nil || mark.Run != c.run {
		return failed
	}
	err := write(ctx, c.ended(mark, MarkCreation))
	if err == nil {
		return failed
	}
	if lost := check(); lost != nil {
		return lost
	}
	c.Logger().WarnContext(ctx, "could not record that a creation is finished", "object", label, "error", err)
	return failed
}

// Ended reports whether the record shows that this run has finished a creation. EndCreation has then just read the whole node.
func (m *Machine) Ended(key Mark) bool {
	mark := creationOf(m.node.Extra, key)
	return mark != nil && mark.Run == m.site.run && !mark.Done.IsZero()
}

// ended returns the edit that records the end of a creation of this run. Ironic refuses it if another run has taken the creation over.
func (c *Site) ended(mark *Creation, key Mark) (patch ironic.Patch) {
	now := *mark
	now.Done = c.ServerNow().UTC()
	patch.Replace(mark.path(key), now)
	return patch
}

// forgetCreations adds to a patch that is sent anyway the removal of marks that no run needs any more.
func (c *Site) forgetCreations(patch ironic.Patch, extra map[string]any) ironic.Patch {
	for _, key := range marks {
		mark := creationOf(extra, key)
		if c.isDead(mark) && !c.unfinished(mark, extra) && !patch.Changes("/extra/"+string(key)) {
			patch.Remove("/extra/" + string(key))
		}
	}
	return patch
}

// guarded returns a patch that Ironic refuses if another run has taken over a creation of this run.
func (m *Machine) guarded(patch ironic.Patch) ironic.Patch {
	var guards ironic.Patch
	for _, key := range m.marks {
		if mark := creationOf(m.node.Extra, key); mark != nil && mark.Run == m.site.run && mark.Done.IsZero() {
			guards.Replace(mark.path(key), mark)
		}
	}
	return append(guards, patch...)
}

// ForgetCreation removes an unfinished mark of an earlier run from the node of a resource that Terraform has in state: an apply has
// finished what the interrupted run had begun. It only logs a failure.
func (m *Machine) ForgetCreation(ctx context.Context, key Mark) {
	mark := creationOf(m.node.Extra, key)
	if !m.site.isDead(mark) || !mark.Done.IsZero() {
		return
	}
	var patch ironic.Patch
	patch.Replace(mark.path(key), mark)
	patch.Remove("/extra/" + string(key))
	if err := m.write(ctx, patch); err != nil {
		m.site.Logger().WarnContext(ctx, "could not remove the mark of an interrupted creation", append(nodeAttributes(m.node), "error", err)...)
	}
}

// ForgetDeployment removes the mark of the deployment of an instance that leaves the state and runs on, so that no run takes the machine over. It only
// logs a failure.
func (c *Site) ForgetDeployment(ctx context.Context, node, instance string) {
	c.forget(ctx, node, MarkReservation, func(mark *Creation) bool { return mark.Instance == instance })
}

// ForgetHost removes the mark of the creation of a node that leaves the state and stays in Ironic, so that no run takes it for one that a killed run has
// begun. It only logs a failure.
func (c *Site) ForgetHost(ctx context.Context, node string) {
	c.forget(ctx, node, MarkCreation, func(*Creation) bool { return true })
}

// forget removes a mark of a node if it is the one that is meant.
func (c *Site) forget(ctx context.Context, node string, key Mark, meant func(*Creation) bool) {
	m, err := c.Machine(ctx, node)
	if ironic.IsNotFound(err) {
		return
	}
	if err == nil {
		mark := creationOf(m.node.Extra, key)
		if mark == nil || !meant(mark) {
			return
		}
		var patch ironic.Patch
		patch.Replace(mark.path(key), mark)
		patch.Remove("/extra/" + string(key))
		err = m.write(ctx, patch)
	}
	if err != nil {
		c.Logger().WarnContext(ctx, "could not remove the mark of what leaves the state", "mark", key, "uuid", node, "error", err)
	}
}

// TakesOver adds to a patch of a discovered node the mark that this run creates a host of it.
func (c *Site) TakesOver(patch *ironic.Patch, n *ironic.Node) {
	if mark := creationOf(n.Extra, MarkCreation); mark == nil || mark.Run != c.run {
		patch.Set("/extra/"+string(MarkCreation), c.begun().value())
	}
}

// HasTakenOver reports whether a creation of this run has taken over a node, an allocation, or the reservation of a node. The
// deletion of the resource that had it before must then leave it alone. Terraform creates before it deletes if the configuration
// says so, or if the address of the resource has changed.
func (c *Site) HasTakenOver(key Mark, id string) bool {
	_, taken := c.takenOver.Load(string(key) + " " + id)
	return taken
}

// finishing takes over the creation of an object: it replaces the mark of a killed run by one of this run. read reads the object's
// mark and fails if this run may not take the creation over; write sends a patch of the object. Of several runs that try, one
// succeeds at a time, because they share a lock record in Ironic; the patch is refused if the mark has changed.
func (c *Site) finishing(ctx context.Context, id string, key Mark, read func(context.Context) (*Creation, error), write func(context.Context, ironic.Patch) error) (*Creation, error) {
	taken := string(key) + " " + id
	if _, twice := c.takenOver.LoadOrStore(taken, true); twice {
		return nil, errOurs
	}
	var mark *Creation
	lock := throttle.Lock{
		Name: "creation:" + id, Description: "terraform-provider-metal: a run takes over a creation, which takes seconds", For: "take over the creation of " + id, Wait: takeOverWait,
	}
	err := c.locks.With(ctx, lock, func(ctx context.Context) (err error) {
		if mark, err = read(ctx); err != nil {
			return err
		}
		mine := c.begun()
		mine.Instance, mine.Origin, mine.Group = mark.Instance, mark.Origin, mark.Group
		var patch ironic.Patch
		patch.Replace(mark.path(key), mark)
		patch.Set("/extra/"+string(key), mine.value())
		err = write(ctx, patch)
		if !ironic.IsStatus(err, http.StatusBadRequest, "") {
			return err
		}
		switch now, again := read(ctx); { // the answer may be that to a repeated request
		case errors.Is(again, errOurs):
			return nil
		case again != nil:
			return again
		case now.Run != mark.Run:
			return errTakenOver
		}
		return err
	})
	if err != nil {
		c.takenOver.Delete(taken)
	}
	return mark, err
}

// Why a creation cannot be taken over.
var (
	errTakenOver = errors.New("another run has taken over the creation")
	errOurs      = errors.New("another resource of this configuration has taken it over. Two resources describe the same object: remove one of them")
)

// refuseTakeOver returns why the creation with a mark cannot be taken over.
func (c *Site) refuseTakeOver(mark *Creation) error {
	if mark != nil && mark.Run == c.run {
		return errOurs
	}
	return errTakenOver
}

// IsSuperseded reports whether err is a SupersededError.
func IsSuperseded(err error) bool {
	var superseded *SupersededError
	return errors.As(err, &superseded)
}
