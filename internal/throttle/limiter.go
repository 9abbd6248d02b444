package throttle

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/fault"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/rest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/tracing"
)

// Limiter sends the verbs that make machines boot or write, as many as there are slots, in the order of the queue. It is safe for
// concurrent use.
type Limiter struct {
	limit Limit
	site  Site
	locks *Locks
	poll  time.Duration

	freezes *Freezes

	mu       sync.Mutex
	queue    []*waiter
	running  bool               // a goroutine runs rounds for the queue
	stop     context.CancelFunc // stops these rounds
	ended    <-chan struct{}    // closed when these rounds have ended
	own      map[string]bool    // machines on which this process has started an operation
	starts   map[string]start   // machines that are being switched on or restarted
	kept     map[string]keeping // machines that keep their slot
	id       string             // of this run in the words that it leaves for others
	worded   time.Time          // when it left words last; zero: it has left none
	yields   bool               // it leaves free slots to other runs
	freed    chan struct{}      // has a value when a machine of this process has given its slot back
	unlocked bool               // this user may not write the lock record: the limit applies to this process only
	stats    stats

	latest struct{ wrote, seen time.Time } // the last state that any machine has entered, and when this process saw it first
}

// New returns a limiter of a run. id is that of the run, which no other run on the site has. poll is the longest time between two polls of
// the site: a failed round is repeated after it, and a notice is given only about waits that are longer.
func New(id string, limit Limit, site Site, poll time.Duration) *Limiter {
	return &Limiter{
		limit: limit, site: site, locks: NewLocks(site), poll: poll, own: map[string]bool{}, starts: map[string]start{},
		kept: map[string]keeping{},
		id:   id, freed: make(chan struct{}, 1), freezes: NewFreezes(site),
	}
}

// Send sends a verb to a machine. seen is the machine in the list that was just taken under the lock. It is nil if there is no
// limit or no lock, or if the machine is exempt or already busy. ctx ends when the verb must not be sent any more.
type Send func(ctx context.Context, seen *Machine) error

// waiter is a verb that waits for a slot.
type waiter struct {
	Ticket
	arrived time.Time                                       // when it was added to the queue
	log     func(text string, args ...any)                  // logs what the machine does; the text is a predicate
	told    int                                             // the place in the queue that the log has told last; zero: none
	send    func(held context.Context, seen *Machine) error // returns the error of the caller's Send
	left    func() bool                                     // reports whether the caller has stopped waiting

	completes bool       // no freeze holds it back
	outcome   chan error // gets one error: of send, or the reason why no machine gets a slot any more
	panicked  any        // the value with which send panicked
}

// placeOf is the key of InPlaceOf.
type placeOf struct{}

// InPlaceOf returns ctx for a machine that waits for slots since a time: after a request that was sent in vain it does not go to the end of
// the queue.
func InPlaceOf(ctx context.Context, since time.Time) context.Context {
	return context.WithValue(ctx, placeOf{}, since)
}

// KindQueue is the kind of an error which says why a waiting machine cannot get a slot. Nothing was sent to it.
const KindQueue fault.Kind = "queue"

// Admit waits for a slot for a machine, calls send, and returns its error. Machines that are exempt or already busy do not wait.
// failures is how often operations on the machine have failed recently. If the site's own limit refuses the verb, the machine
// keeps its place and waits again. Admit returns ctx's error if ctx ends first, and an error of KindQueue if the machines cannot be
// counted.
func (l *Limiter) Admit(ctx context.Context, m Machine, failures int, send Send) error {
	return l.admit(ctx, m, failures, send, func() {})
}

// AdmitStart is Admit for a power verb that starts a machine. The machine takes a slot while it starts and, in this process, for
// SettleFor after that.
func (l *Limiter) AdmitStart(ctx context.Context, m Machine, failures int, send Send) error {
	return l.admit(ctx, m, failures, send, func() { l.noteStart(m.ID) })
}

func (l *Limiter) admit(ctx context.Context, m Machine, failures int, send Send, sent func()) error {
	noted := func(ctx context.Context, seen *Machine) error {
		err := send(ctx, seen)
		if err == nil {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.own[m.ID] = true
			l.begun(m.ID)
			sent()
		}
		return err
	}
	if l.limit.Max == 0 || l.limit.Exempts(m) || m.Busy || m.Starting {
		return noted(ctx, nil)
	}
	waiting, arrived := l.traceWait(ctx, m), time.Now()
	queued, waited := ctx.Value(placeOf{}).(time.Time)
	if !waited {
		queued = arrived
	}
	w := &waiter{
		Ticket: Ticket{ID: m.ID, Scope: l.limit.ScopeOf(m), Failures: failures, Queued: queued}, arrived: arrived,
		log: func(text string, args ...any) {
			l.site.Log(ctx, slog.LevelInfo, fmt.Sprintf("machine %s in state %s %s", m.Label, m.State, text),
				append([]any{"node", m.Name, "uuid", m.ID, "state", m.State}, args...)...)
		},
		left:      func() bool { return ctx.Err() != nil },
		completes: ctx.Value(completes{}) != nil,
		outcome:   make(chan error, 1),
		send: func(held context.Context, seen *Machine) error {
			sending, cancel := context.WithCancel(ctx)
			defer cancel()
			defer context.AfterFunc(held, cancel)()
			tracing.End(waiting, nil)
			err := noted(sending, seen)
			if l.site.Refused(err) {
				waiting = l.traceWait(ctx, m)
			}
			return err
		},
	}
	err := l.wait(ctx, w)
	tracing.End(waiting, err)
	return err
}

func (l *Limiter) traceWait(ctx context.Context, m Machine) trace.Span {
	_, span := tracing.Start(tracing.AboutNode(ctx, m.Name, m.ID), "wait for a slot")
	if span.IsRecording() {
		span.SetAttributes(tracing.SlotLimit.Int(l.limit.Max))
	}
	return span
}

// wait waits for the outcome of a waiter, or removes it from the queue when ctx ends.
func (l *Limiter) wait(ctx context.Context, w *waiter) error {
	l.enqueue(ctx, w)
	defer l.leaveNoLock(ctx)
	var err error
	select {
	case err = <-w.outcome:
	case <-ctx.Done():
		if l.dequeue(w) {
			return ctx.Err()
		}
		err = <-w.outcome // its verb is being sent, which ends with ctx
	}
	if w.panicked != nil {
		panic(w.panicked)
	}
	return err
}

// leaveNoLock stops the rounds when the user has stopped the run and no other machine waits, and waits for their end. Otherwise
// the process could end first and leave the lock behind.
func (l *Limiter) leaveNoLock(ctx context.Context) {
	if ctx.Err() == nil {
		return
	}
	l.mu.Lock()
	last, ended := len(l.queue) == 0, l.ended
	if last && l.running {
		l.running = false
		l.stop()
	}
	l.mu.Unlock()
	if !last {
		return
	}
	select {
	case <-ended:
	case <-time.After(2 * rest.AnswerGrace):
	}
}
