// Package operation traces an operation on a machine: one span for it, and below that one for each provision state.
package operation

import (
	"cmp"
	"context"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/tracing"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/states"
)

// Trace is the trace of one operation. The methods of nil do nothing. It is not safe for concurrent use.
type Trace struct {
	ctx   context.Context //nolint:containedctx // the spans of states begin below it
	clock Clock
	name  string
	span  trace.Span
	begun time.Time

	within trace.Span // of the state; nil in a part of another operation
	state  string
	step   string
}

// Clock tells the time of the server whose times nodes have.
type Clock interface{ ServerNow() time.Time }

// Begin begins the spans of an operation and of the machine's present state. Without a trace in ctx it returns ctx and nil.
func Begin(ctx context.Context, name string, n *ironic.Node, clock Clock) (context.Context, *Trace) {
	below, span := tracing.Start(tracing.AboutNode(ctx, n.Name, n.UUID), name)
	if !span.IsRecording() {
		return ctx, nil
	}
	t := &Trace{ctx: below, clock: clock, name: name, span: span, begun: time.Now()}
	t.See(n)
	return below, t
}

// Part begins the span of a part of the operation. The provision states are those of the whole. A part with the name of the whole is the
// whole, and has no span of its own: Part then returns nil.
func (t *Trace) Part(ctx context.Context, name string) (context.Context, *Trace) {
	if name == t.name {
		return ctx, nil
	}
	below, span := tracing.Start(ctx, name)
	return below, &Trace{span: span}
}

// See ends the span of a state that the node has left, and begins that of the next one. A span begins when Ironic has changed the state,
// which a poll shows later.
func (t *Trace) See(n *ironic.Node) {
	if t == nil {
		return
	}
	if t.within == nil || n.ProvisionState != t.state {
		at := t.changedAt(n)
		if t.within != nil {
			t.within.End(trace.WithTimestamp(at))
		}
		_, t.within = tracing.Start(t.ctx, "state "+n.ProvisionState, trace.WithTimestamp(at),
			trace.WithAttributes(tracing.State.String(n.ProvisionState)))
		t.state, t.step, t.begun = n.ProvisionState, "", at
	}
	if step := stepOf(n); step != t.step {
		if t.step = step; step != "" {
			t.within.SetAttributes(tracing.Step.String(step)) // a long wait has more events than a span keeps
			t.within.AddEvent("step "+step, trace.WithAttributes(tracing.Step.String(step)))
		}
	}
}

func stepOf(n *ironic.Node) string {
	return cmp.Or(states.StepName(n.DeployStep), states.StepName(n.CleanStep), states.StepName(n.ServiceStep))
}

// changedAt returns when Ironic has changed the state of a node, by the local clock, but not before the state before it was seen.
func (t *Trace) changedAt(n *ironic.Node) time.Time {
	now := time.Now()
	at := n.ProvisionUpdatedAt.Add(now.Sub(t.clock.ServerNow()))
	switch {
	case at.Before(t.begun):
		return t.begun
	case at.After(now):
		return now
	}
	return at
}

// Within returns ctx with the span of the state, for polls.
func (t *Trace) Within(ctx context.Context) context.Context {
	if t == nil {
		return ctx
	}
	return trace.ContextWithSpan(ctx, t.within)
}

// End ends the operation.
func (t *Trace) End(err error) {
	if t == nil {
		return
	}
	if t.within != nil {
		t.within.End()
	}
	tracing.End(t.span, err)
}
