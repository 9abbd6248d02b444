package tracing

import (
	"context"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/routine"
)

// How long a run waits for the collector at most, whatever that does: all calls together, and the end of the run. Terraform kills a
// provider that does not end within two seconds (reference/terraform.md#end-of-a-providers-process).
const (
	callsWait = time.Second
	endWaits  = time.Second
)

// Provider makes spans and delivers them. *sdk/trace.TracerProvider is one.
type Provider interface {
	trace.TracerProvider
	ForceFlush(ctx context.Context) error
	Shutdown(ctx context.Context) error
}

// Run is the trace of a run, with one span for all of it. The methods of nil do nothing. It is safe for concurrent use.
type Run struct {
	provider Provider
	parent   trace.SpanContext
	name     string

	turn chan struct{} // holds a value while a call waits for the collector

	mu      sync.Mutex
	root    trace.Span    // nil until the first call
	calls   int           // that have not ended
	changed bool          // a call has changed something since the last delivery
	left    time.Duration // for which calls may still wait
}

// NewRun returns a run whose spans a provider makes and delivers. Its span is below a parent of another program, if that is valid.
func NewRun(provider Provider, parent trace.SpanContext, name string) *Run {
	return &Run{provider: provider, parent: parent, name: name, turn: make(chan struct{}, 1), left: callsWait}
}

// Begin returns a context with the span of the run, below which Start makes others.
func (r *Run) Begin(ctx context.Context) context.Context {
	if r == nil {
		return ctx
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.root == nil {
		_, r.root = r.provider.Tracer(Scope).Start(trace.ContextWithRemoteSpanContext(ctx, r.parent), r.name)
	}
	return trace.ContextWithSpan(ctx, r.root)
}

// Call is a call of the run, with its span. The methods of the zero value do nothing.
type Call struct {
	run     *Run
	span    trace.Span
	changes bool
}

// Call begins the span of a call, such as "create metal_host". changes says that the call may change something outside.
func (r *Run) Call(ctx context.Context, name string, changes bool, attributes ...attribute.KeyValue) (context.Context, Call) {
	if r == nil {
		return ctx, Call{}
	}
	ctx, span := Start(r.Begin(ctx), name)
	span.SetAttributes(attributes...)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls++
	return ctx, Call{run: r, span: span, changes: changes}
}

// Fail gives the call the status of an error.
func (c Call) Fail(text string) {
	if c.run != nil {
		Fail(c.span, "_OTHER", text)
	}
}

// End ends the call. If no other call is in progress, and something was changed since the last delivery, End waits for the collector,
// because the process may be killed as soon as the call has answered.
func (c Call) End(ctx context.Context) {
	if c.run == nil {
		return
	}
	End(c.span, nil)
	if c.run.ended(c.changes) {
		c.run.deliver(context.WithoutCancel(ctx))
	}
}

// ended counts a call that has ended, and reports whether to deliver the spans now.
func (r *Run) ended(changes bool) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls--
	r.changed = r.changed || changes
	due := r.changed && r.calls == 0
	r.changed = r.changed && !due
	return due
}

// deliver waits until the collector has the spans that have ended, as long as calls may wait. The delivery goes on afterwards.
func (r *Run) deliver(ctx context.Context) {
	timer := time.NewTimer(r.mayWait())
	defer timer.Stop()
	select {
	case r.turn <- struct{}{}:
	case <-timer.C:
		return
	}
	defer func() { <-r.turn }()
	may, begun := r.mayWait(), time.Now()
	if may <= 0 {
		return
	}
	timer.Reset(may)
	done := routine.Go(func() {
		_ = r.provider.ForceFlush(ctx) // the exporter tells of errors
	}, func(*routine.PanicError) {})
	select {
	case <-done:
	case <-timer.C:
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.left -= time.Since(begun)
}

// mayWait returns for how long calls may still wait.
func (r *Run) mayWait() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.left
}

// Close ends the run, and waits until the collector has all spans, at most for a second.
func (r *Run) Close(ctx context.Context) {
	if r == nil {
		return
	}
	r.mu.Lock()
	root := r.root
	r.mu.Unlock()
	if root != nil {
		root.End()
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endWaits) // also after Ctrl-C
	defer cancel()
	_ = r.provider.Shutdown(ctx) // as above
}
