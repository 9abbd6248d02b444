// Package readiness finds out whether a machine answers: a TCP port accepts connections, or an HTTP server answers as wanted. It knows
// neither Ironic nor Terraform. It runs where its caller runs, and uses no proxy.
package readiness

import (
	"context"
	"fmt"
	"net"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/rest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/tracing"
)

// Dial connects to an address, as net.Dialer.DialContext does.
type Dial func(ctx context.Context, network, address string) (net.Conn, error)

// Dialer connects to addresses.
type Dialer interface {
	DialContext(ctx context.Context, network, address string) (net.Conn, error)
}

// Check says when a machine is ready. Exactly one of TCP and HTTP is set.
type Check struct {
	TCP       string // host:port
	HTTP      *HTTP
	Timeout   time.Duration // from the first attempt to the end of StableFor
	StableFor time.Duration // how long every attempt must succeed
	Dial      Dial          // nil: the network
}

// The times of the attempts. Once the machine answers, the next attempts follow one another as fast as the first ones.
const (
	attemptFor = 10 * time.Second // the longest time that an attempt takes
	firstPause = time.Second      // between attempts; it grows
	mostPause  = 5 * time.Second
	tellEvery  = 30 * time.Second
)

// Wait tries until the machine is ready. It returns an Error after Timeout, and the error of ctx if that ends first. It calls log at the
// beginning, every 30 s, and when the machine is ready; the text is a predicate of the machine.
func (c Check) Wait(ctx context.Context, log func(text string)) (err error) {
	ctx, span := tracing.Start(ctx, "ready check")
	log(fmt.Sprintf("has a ready check: %s, for at most %s", c.Target(), c.Timeout))
	w := wait{Check: c, begun: time.Now(), pause: newPause()}
	w.told = w.begun
	defer func() { w.trace(span, err) }()
	for {
		done, pause := w.try(ctx)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case done:
			log("is ready after " + w.after())
			return nil
		case time.Since(w.told) >= tellEvery:
			w.told = time.Now()
			log(fmt.Sprintf("is not ready after %s: %s", w.after(), w.sofar()))
		}
		if err := rest.Sleep(ctx, min(pause, w.left())); err != nil {
			return err
		}
		if w.left() <= 0 {
			return w.failure()
		}
	}
}

func (w *wait) trace(span trace.Span, err error) {
	if span.IsRecording() {
		span.SetAttributes(tracing.ReadyCheck.String(w.Target()), tracing.Attempts.Int(w.tries))
	}
	tracing.End(span, err)
}

type wait struct {
	Check
	begun, told time.Time
	pause       rest.Backoff
	tries       int
	stable      time.Time // since when every attempt has succeeded; zero: the last one has failed
	answered    bool      // an attempt has succeeded
	last        *problem  // of the last attempt that has failed
}

func newPause() rest.Backoff { return rest.Backoff{First: firstPause, Max: mostPause, Factor: 1.5} }

// try makes an attempt. It returns how long to wait until the next one, unless the machine is ready.
func (w *wait) try(ctx context.Context) (ready bool, pause time.Duration) {
	left := w.left()
	ctx, cancel := context.WithTimeout(ctx, min(attemptFor, left))
	defer cancel()
	w.tries++
	if failed := w.attempt(ctx); failed != nil {
		if !w.stable.IsZero() {
			w.stable, w.pause = time.Time{}, newPause()
		}
		if span := trace.SpanFromContext(ctx); span.IsRecording() && (w.last == nil || w.last.fact != failed.fact) {
			span.AddEvent(failed.fact)
		}
		if cut := left < attemptFor && failed.cause == Unreachable; !cut || w.last == nil { // otherwise the one before says more
			w.last = failed
		}
		return false, w.pause.Next()
	}
	if w.answered = true; w.stable.IsZero() {
		w.stable = time.Now()
	}
	missing := w.StableFor - time.Since(w.stable)
	return missing <= 0, min(firstPause, missing)
}

func (w *wait) left() time.Duration { return w.Timeout - time.Since(w.begun) }

func (w *wait) after() string { return time.Since(w.begun).Round(time.Second).String() }

// sofar says what has come back last.
func (w *wait) sofar() string {
	if !w.stable.IsZero() {
		return fmt.Sprintf("it has answered for %s, and must do so for %s", time.Since(w.stable).Round(time.Second), w.StableFor)
	}
	return fmt.Sprintf("%s, the last one: %s", attempts(w.tries), w.last.fact)
}

func attempts(n int) string {
	if n == 1 {
		return "1 attempt"
	}
	return fmt.Sprintf("%d attempts", n)
}

func (w *wait) failure() *Error {
	e := &Error{Target: w.Target(), Tries: w.tries, Within: w.Timeout, Last: w.sofar()}
	switch {
	case !w.stable.IsZero():
		e.Cause, e.advice = Unstable, "Raise timeout, which includes stable_for."
	case w.answered:
		e.Cause, e.advice = Unstable, "It has answered before, and then no longer: the system may still be starting, or restart again "+
			"and again. Look at its console. "+w.last.advice
	default:
		e.Cause, e.advice = w.last.cause, w.last.advice
	}
	return e
}

// Error says that a machine was not ready in time.
type Error struct {
	Target string // without secrets
	Tries  int
	Within time.Duration // the time-out
	Cause  Cause
	Last   string // what has come back last
	advice string
}

// Error says what was tried, how long, and what came back last.
func (e *Error) Error() string {
	return fmt.Sprintf("%s did not answer as wanted within %s: %s", e.Target, e.Within, e.Last)
}

// Advice says what to do about the cause.
func (e *Error) Advice() string { return e.advice }
