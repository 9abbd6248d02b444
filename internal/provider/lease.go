package provider

import (
	"context"
	"fmt"
	"iter"
	"reflect"
	"runtime/debug"
	"sync"
	"time"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-log/tflog"
	"github.com/hashicorp/terraform-plugin-log/tfsdklog"
)

// lease is a context that forwards to an RPC's context and releases it when the RPC ends. The framework (1.19) keeps every context
// that it receives until the process ends, about 13 KiB each (reference/terraform.md#memory-of-the-plugin-framework).
type lease struct {
	mu  sync.RWMutex
	rpc context.Context //nolint:containedctx // the purpose of this type
}

func (l *lease) get() context.Context {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.rpc
}

func (l *lease) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rpc = ended()
}

func (l *lease) Deadline() (time.Time, bool) { return l.get().Deadline() }
func (l *lease) Done() <-chan struct{}       { return l.get().Done() }
func (l *lease) Err() error                  { return l.get().Err() }
func (l *lease) Value(key any) any           { return l.get().Value(key) }

// ended returns a cancelled context that holds the logger of the process and nothing else: work that goes on after the RPC that has begun
// it writes its log there.
var ended = sync.OnceValue(func() context.Context {
	ctx, cancel := context.WithCancel(context.Background()) //nolint:forbidigo // replaces the context of an RPC that has ended
	cancel()
	return tfsdklog.NewRootProviderLogger(ctx, tfsdklog.WithStderrFromInit(), tfsdklog.WithLogName("metal"),
		tflog.WithLevelFromEnv("TF_LOG_PROVIDER", "metal"))
})

// guard runs one RPC, turns a panic into a diagnostic, and cleans the diagnostics. failed makes the answer from the diagnostic of a panic.
func guard[Req, Resp any](ctx context.Context, s *Server, req Req, call func(context.Context, Req) (Resp, error),
	failed func(*tfprotov6.Diagnostic) Resp,
) (resp Resp, err error) {
	ctx, traced := s.trace(ctx, req)
	l := &lease{rpc: ctx}
	defer l.end()
	defer func() {
		if r := recover(); r != nil {
			resp, err = failed(s.panicked(ctx, r)), nil
		}
		s.cleanAll(diagnosticsOf(resp))
		traceErrors(traced, diagnosticsOf(resp))
		traced.End(ctx)
	}()
	s.learn(req)
	return call(l, req)
}

// failed returns an answer that has only a diagnostic.
func failed[Resp any](d *tfprotov6.Diagnostic) *Resp {
	resp := new(Resp)
	reflect.ValueOf(resp).Elem().FieldByName("Diagnostics").Set(reflect.ValueOf([]*tfprotov6.Diagnostic{d}))
	return resp
}

// diagnosticsOf returns the diagnostics of an answer; nil if it has none.
func diagnosticsOf(resp any) []*tfprotov6.Diagnostic {
	answer := reflect.Indirect(reflect.ValueOf(resp))
	if !answer.IsValid() {
		return nil
	}
	field := answer.FieldByName("Diagnostics")
	if !field.IsValid() {
		return nil
	}
	diagnostics, _ := field.Interface().([]*tfprotov6.Diagnostic)
	return diagnostics
}

// guardStream runs one RPC that answers with a stream. The lease ends with the stream. A panic in the RPC or in the stream becomes
// the last event, which failed makes.
func guardStream[Req, Event any](ctx context.Context, s *Server, req Req, call func(context.Context, Req) (iter.Seq[Event], error),
	failed func(*tfprotov6.Diagnostic) Event,
) (events iter.Seq[Event], err error) {
	ctx, traced := s.trace(ctx, req)
	l := &lease{rpc: ctx}
	defer func() {
		if err != nil {
			traced.End(ctx)
		}
	}()
	defer func() {
		if r := recover(); r != nil {
			l.end()
			traced.End(ctx)
			last := cleanEvent(s, failed(s.panicked(ctx, r)))
			events, err = func(yield func(Event) bool) { yield(last) }, nil
		}
	}()
	s.learn(req)
	events, err = call(l, req)
	if err != nil {
		l.end()
		return nil, err
	}
	if events == nil {
		events = func(func(Event) bool) {}
	}
	stream := leasedStream(ctx, s, l, events, failed)
	return func(yield func(Event) bool) {
		defer traced.End(ctx)
		for event := range stream {
			traceErrors(traced, diagnosticsIn(event))
			if !yield(event) {
				return
			}
		}
	}, nil
}

// leasedStream cleans events and passes them on until the stream or its reader ends, then ends the lease.
func leasedStream[Event any](ctx context.Context, s *Server, l *lease, events iter.Seq[Event],
	failed func(*tfprotov6.Diagnostic) Event,
) iter.Seq[Event] {
	return func(yield func(Event) bool) {
		defer l.end()
		reading, stopped := false, false
		defer func() {
			if reading {
				return // do not recover a panic of the reader
			}
			if r := recover(); r != nil {
				last := cleanEvent(s, failed(s.panicked(ctx, r)))
				if !stopped {
					yield(last)
				}
			}
		}()
		for event := range events {
			reading = true
			stopped = !yield(cleanEvent(s, event))
			reading = false
			if stopped {
				return
			}
		}
	}
}

func (s *Server) panicked(ctx context.Context, value any) *tfprotov6.Diagnostic {
	tflog.Error(ctx, "panic in the provider", map[string]any{"panic": s.clean(fmt.Sprint(value)), "stack": string(debug.Stack())})
	return &tfprotov6.Diagnostic{
		Severity: tfprotov6.DiagnosticSeverityError,
		Summary:  "The provider has a bug",
		Detail: fmt.Sprintf("The provider panicked: %v. Other resources are not affected. Please report this with the stack trace from "+
			"the log (TF_LOG=ERROR).",
			value),
	}
}
