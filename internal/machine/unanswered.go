package machine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/clock"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/rest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/tracing"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/failure"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/states"
)

// unansweredFor is how long a request without an answer may still take effect, from the first read that Ironic answers afterwards on. Its
// API waits 60 s for a conductor, and a conductor 3 s for the lock of a node (reference/ironic.md#requests-without-an-answer).
const unansweredFor = 90 * time.Second

// Call is a request that moves a machine.
type Call struct {
	verb  ironic.Verb // empty unless it changes the provision state
	doing string      // an infinitive whose object is the machine, for messages
	// trace looks for the request on the node as it was right before and as it is now; sent is when it was sent, by the server's clock.
	trace func(before, now *ironic.Node, sent time.Time) trace
}

func (c Call) name() string {
	if c.verb != "" {
		return "verb " + string(c.verb)
	}
	return c.doing
}

// trace says whether a node shows that Ironic has executed a request.
type trace int

const (
	traceNone   trace = iota // Ironic has not executed it, at least not yet
	traceFound               // Ironic has begun to execute it, or has ended that
	traceHidden              // the node does not show whether it was executed
)

// CallWithoutTrace returns a request that leaves nothing on the node but a lock, and perhaps a last_error.
func CallWithoutTrace(doing string) Call {
	return Call{doing: doing, trace: func(_, _ *ironic.Node, _ time.Time) trace { return traceHidden }}
}

// unanswered is a request whose answer is lost: Ironic may execute it later, or never.
type unanswered struct {
	Call
	before *ironic.Node // right before the request
	sent   time.Time    // by the server's clock
	seen   time.Time    // when Ironic was first read afterwards, by the local clock; zero: not yet
	err    error        // in place of the answer
}

// fate is what became of a request without an answer.
type fate int

const (
	open       fate = iota // not known yet
	happened               // Ironic has executed it
	lost                   // Ironic never will
	unknowable             // the node does not tell
)

// fate decides by the node, which was just read. over says that the request can take effect no more.
func (u *unanswered) fate(now *ironic.Node, over bool) fate {
	found := u.trace(u.before, now, u.sent)
	switch {
	case found == traceFound:
		return happened
	case states.IsLocked(now) || !over:
		return open
	case found == traceNone || u.untouched(now):
		return lost
	}
	return unknowable
}

// untouched reports whether Ironic has not even locked the node since the request, which changes updated_at. That time has whole seconds.
func (u *unanswered) untouched(now *ironic.Node) bool {
	return now.UpdatedAt.Equal(u.before.UpdatedAt) && u.before.UpdatedAt.Before(u.sent.Add(-clock.Slack))
}

// KindUnanswered is the kind of an error which says that Ironic did not answer a request that moves a machine, and that it is not known
// whether Ironic has executed it. The request was not repeated. What came in place of the answer is not a cause, because the request must
// not be repeated like one that Ironic has refused.
const KindUnanswered failure.Kind = "unanswered"

// ask sends a request that moves the machine, once, unless the site is frozen. All such requests go through it. If the answer is lost, the
// record remembers the request, ask returns an error of KindUnanswered, and the machine gets no other until settle has found out what
// became of this one.
func (m *Machine) ask(ctx context.Context, c Call, send func(context.Context) error) error {
	if m.unanswered != nil {
		return m.unansweredError()
	}
	if err := m.site.Freezes().Check(ctx); err != nil {
		return err
	}
	before, sent := m.node, m.site.Ironic.ServerNow()
	ctx, span := tracing.Start(m.About(ctx), c.name())
	err := send(ctx)
	tracing.End(span, err)
	lost := api.IsUnanswered(err)
	m.acted = m.acted || err == nil || lost || ctx.Err() != nil
	if !lost {
		m.losses = losses{}
		return err
	}
	m.unanswered = &unanswered{Call: c, before: before, sent: sent, err: err}
	m.logInfo(ctx, fmt.Sprintf("got no answer to the request to %s; the provider looks what became of it", c.doing), "error",
		m.site.Ironic.Redact(err.Error()))
	return m.unansweredError()
}

func (m *Machine) unansweredError() *failure.Error {
	return &failure.Error{
		Kind: KindUnanswered, Node: m.node, Fact: fmt.Sprintf("node %s: the answer to the request to %s did not arrive (%v), and the "+
			"node does not show whether Ironic has executed it. It was not repeated",
			ironic.NodeLabel(m.node), m.unanswered.doing, m.unanswered.err),
		Advice: "Look at the machine, for example at its console, and at what lies between here and Ironic. The next apply sends the " +
			"request again if it still seems to be needed.",
		Action: "Look at the machine, for example at its console, and at what lies between here and Ironic. Try again if it " +
			"is needed still.",
	}
}

// settle finds out what became of the request without an answer: it reads the node until that shows it, and reports whether Ironic has
// executed the request. It returns an error of KindUnanswered if the node does not tell, or not before the deadline, and an error of
// KindUnwatched if the node cannot be read.
func (m *Machine) settle(ctx context.Context, deadline time.Time) (executed bool, err error) {
	waiting := &rest.Backoff{First: api.FirstBackoff, Max: 10 * time.Second, Factor: 1.5}
	var fails api.Patience
	for u := m.unanswered; ; {
		node, err := m.site.Ironic.Node(ctx, m.node.UUID)
		if err != nil && !fails.Outlasts(err) {
			return false, m.unwatched(ctx, err)
		}
		if err == nil {
			fails = api.Patience{}
			m.node, m.asked = node, time.Time{}
			m.logState(ctx)
			u.seen = cmp.Or(u.seen, time.Now())
			switch is := u.fate(node, time.Since(u.seen) >= unansweredFor); is {
			case happened, lost:
				m.unanswered = nil
				m.logInfo(ctx, fmt.Sprintf("shows what became of the request to %s: executed: %t", u.doing, is == happened))
				if is == lost {
					return false, m.lose(ctx, u)
				}
				m.losses = losses{}
				return true, nil
			case unknowable:
				return false, m.unansweredError()
			case open:
			}
		}
		wait := waiting.Next()
		if time.Now().Add(wait).After(deadline) {
			if blind := fails.Blind(); blind != nil {
				return false, m.unwatched(ctx, blind)
			}
			return false, m.unansweredError()
		}
		if err := rest.Sleep(ctx, wait); err != nil {
			return false, err
		}
	}
}

// AwaitsAnswer reports whether the answer to the last request that moves the machine is lost, and the node has not shown yet what became of
// it.
func (m *Machine) AwaitsAnswer() bool { return m.unanswered != nil }

// untilSettled calls try, which sends at most one request, with ask. If the answer is lost, untilSettled finds out what became of it,
// within a time-out that begins then, and calls try again if Ironic has not executed it. It waits for the end of a freeze, at most for the
// time-out, by which it puts off a deadline of the caller; nil: the caller has none.
func (m *Machine) untilSettled(ctx context.Context, timeout time.Duration, putOff *time.Time, try func() error) error {
	for deadline := (time.Time{}); ; {
		err := m.whenThawed(ctx, timeout, putOff, try)
		if !isUnanswered(err) {
			return err
		}
		if deadline.IsZero() {
			deadline = time.Now().Add(timeout)
		}
		executed, err := m.settle(ctx, deadline)
		if err != nil || executed {
			return err
		}
	}
}

// asItWas calls try, which sends a request to the machine. While Ironic refuses the request because a conductor has locked the node,
// asItWas waits for that and calls try again, but returns an error of KindRefused if the machine's instance or provision state is another
// than it was: what has locked the node may be another client's deployment. try may put the deadline off.
func (m *Machine) asItWas(ctx context.Context, was footing, deadline *time.Time, try func() error) error {
	for {
		err := try()
		if !api.IsLocked(err) {
			return err
		}
		if late := m.poll(ctx, *deadline); errors.Is(late, api.ErrNoPoll) {
			return err
		} else if late != nil {
			return late
		}
		if err := m.Refresh(ctx); err != nil { // polls do not have the time of the last power change
			return err
		}
		if err := m.AwaitUnlocked(ctx, *deadline); err != nil {
			return err
		}
		if m.footing() != was {
			return m.AsItIs()
		}
	}
}

// Insist sends a request that reaches the machine in any provision state. It sends the request again while it is lost or the node is
// locked, at most for the time-out, and only while the machine has the same instance and provision state.
func (m *Machine) Insist(ctx context.Context, c Call, timeout time.Duration, send func(context.Context) error) error {
	deadline := time.Now().Add(timeout)
	return m.asItWas(ctx, m.footing(), &deadline, func() error {
		return m.untilSettled(ctx, timeout, &deadline, func() error { return m.ask(ctx, c, send) })
	})
}

// settled returns err unless it is an error of KindUnanswered. After one it settles the request within settleFor, and returns nil if Ironic
// has executed it, and what came in place of the answer if not.
func (m *Machine) settled(ctx context.Context, err error) error {
	if !isUnanswered(err) {
		return err
	}
	u := m.unanswered
	executed, err := m.settle(ctx, time.Now().Add(settleFor))
	if executed || err != nil {
		return err
	}
	return u.err
}

// losses are requests to do the same, one after the other, none of which Ironic has executed.
type losses struct {
	doing string
	tries int
	err   error // in place of the last answer
}

const (
	tellLosses = 3           // after so many in a row, the log and the error of the operation tell of them
	mostLosses = api.Retries // after so many, the request is not sent again
)

// KindUnsent is the kind of an error which says that Ironic never executes a request that moves a machine, though it answers others.
const KindUnsent failure.Kind = "unsent"

// lose counts a request that Ironic never executes. It returns an error of KindUnsent if the request is not to be sent again.
func (m *Machine) lose(ctx context.Context, u *unanswered) error {
	if m.losses.doing != u.doing {
		m.losses = losses{doing: u.doing}
	}
	m.losses.tries, m.losses.err = m.losses.tries+1, u.err
	if m.losses.tries >= mostLosses {
		return m.unsentError()
	}
	if m.losses.tries >= tellLosses {
		m.site.Ironic.Logger().WarnContext(ctx, fmt.Sprintf("%s; it is sent again", m.unsentError()), NodeAttributes(m.node)...)
	}
	return nil
}

// unsentError says that a request was lost too often. What came in place of the answers is not a cause: Ironic has refused nothing.
func (m *Machine) unsentError() *failure.Error {
	const cause = "Ironic answers other requests. Look for what drops this one on the way to it: proxies, load balancers, firewalls, and " +
		"the log of the API. The request has changed nothing on the machine. "
	return &failure.Error{
		Kind: KindUnsent, Node: m.node, Fact: m.site.Ironic.Redact(fmt.Sprintf("node %s: the request to %s was sent %d times and never "+
			"reached Ironic at %s; what came back last: %v", ironic.NodeLabel(m.node), m.losses.doing, m.losses.tries,
			m.site.Ironic.Address(), m.losses.err)),
		Advice: cause + "Then apply again.", Action: cause + "Then try again.",
	}
}

func isUnanswered(err error) bool { return failure.Is(err, KindUnanswered) }
