package tracing_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/tracing"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/tracingtest"
)

// collector makes spans. Each delivery takes a time.
type collector struct {
	*tracingtest.Spans
	trace.TracerProvider
	takes     time.Duration
	delivered int // spans
}

func newCollector(takes time.Duration) *collector {
	spans := tracingtest.NewSpans()
	return &collector{Spans: spans, TracerProvider: spans.Provider, takes: takes}
}

func (c *collector) ForceFlush(ctx context.Context) error {
	select {
	case <-time.After(c.takes):
		c.delivered = len(c.Ended())
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (c *collector) Shutdown(ctx context.Context) error { return c.ForceFlush(ctx) }

const never = 1000 * time.Hour

func TestRun_hangingCollectorDelaysByTwoSecondsInAll(t *testing.T) {
	t.Parallel()
	for _, takes := range []time.Duration{time.Millisecond, 300 * time.Millisecond, never} {
		synctest.Test(t, func(t *testing.T) {
			run, ctx := tracing.NewRun(newCollector(takes), trace.SpanContext{}, "run"), t.Context()
			began := time.Now()
			for range 100 {
				_, call := run.Call(ctx, "create metal_host", true)
				call.End(ctx)
			}
			run.Close(ctx)
			if delay := time.Since(began); delay > 2*time.Second {
				t.Errorf("a collector that takes %s delays a run by %s", takes, delay)
			}
			<-time.After(2 * never) // until its deliveries have ended
		})
	}
}

func TestRun_hangingCollectorDelaysCallsBesideEachOtherNoLonger(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		run, ctx := tracing.NewRun(newCollector(never), trace.SpanContext{}, "run"), t.Context()
		began := time.Now()
		ended := make(chan struct{})
		for i := range 10 {
			go func() {
				<-time.After(time.Duration(i) * 100 * time.Millisecond)
				_, call := run.Call(ctx, "create metal_host", true)
				call.End(ctx)
				ended <- struct{}{}
			}()
		}
		for range 10 {
			<-ended
		}
		if delay := time.Since(began); delay > time.Second {
			t.Errorf("the calls have ended after %s", delay)
		}
		<-time.After(2 * never)
	})
}

func TestRun_deliversBeforeTheLastAnswer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCollector(10 * time.Millisecond)
		run, ctx := tracing.NewRun(c, trace.SpanContext{}, "run"), t.Context()
		_, other := run.Call(ctx, "read metal_host", false)
		_, call := run.Call(ctx, "create metal_host", true)
		began := time.Now()
		if call.End(ctx); time.Since(began) > 0 {
			t.Error("a call has waited for the collector though another one was in progress")
		}
		if other.End(ctx); c.delivered != 2 {
			t.Errorf("the last call has answered when the collector had %d spans, want 2", c.delivered)
		}
		began = time.Now()
		_, other = run.Call(ctx, "read metal_host", false)
		if other.End(ctx); time.Since(began) > 0 {
			t.Error("a read has waited for the collector")
		}
	})
}

func TestRun_joinsTheTraceOfItsParent(t *testing.T) {
	t.Parallel()
	c := newCollector(0)
	parent := trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2},
		TraceFlags: trace.FlagsSampled, Remote: true,
	})
	run := tracing.NewRun(c, parent, "run")
	_, call := run.Call(t.Context(), "create metal_host", true)
	call.End(t.Context())
	run.Close(t.Context())
	ended := c.Ended()
	if len(ended) != 2 || ended[1].Parent().SpanID() != parent.SpanID() || ended[0].Parent().SpanID() != ended[1].SpanContext().SpanID() {
		t.Errorf("the spans are %v", ended)
	}
	for _, span := range ended {
		if span.SpanContext().TraceID() != parent.TraceID() {
			t.Errorf("span %q is in another trace", span.Name())
		}
	}
}

func TestRun_deliversAlsoAfterAnInterruption(t *testing.T) {
	t.Parallel()
	c := newCollector(0)
	run := tracing.NewRun(c, trace.SpanContext{}, "run")
	ctx, interrupt := context.WithCancel(t.Context())
	_, call := run.Call(ctx, "metal power on", false)
	interrupt()
	call.End(ctx)
	if run.Close(ctx); c.delivered != 2 {
		t.Errorf("the collector has %d spans, want 2", c.delivered)
	}
}

func TestRun_withoutTracesDoesNothing(t *testing.T) { //nolint:paralleltest // it counts the allocations of the process
	var off *tracing.Run
	ctx := t.Context()
	if allocations := testing.AllocsPerRun(100, func() {
		_, call := off.Call(ctx, "create metal_host", true)
		call.Fail("failed")
		call.End(ctx)
	}); allocations != 0 {
		t.Errorf("a call makes %v allocations", allocations)
	}
	off.Close(ctx)
}
