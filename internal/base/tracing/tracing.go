// Package tracing makes the spans of a run. It uses the API of OpenTelemetry only: internal/base/tracing/export sends the spans to a
// collector. Without a trace in the context, nothing is recorded, and nothing is allocated.
package tracing

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"
)

// Scope names the tracer in exported spans.
const Scope = "github.com/terraform-provider-metal/terraform-provider-metal"

// Attributes of spans and of their events that no semantic convention names.
const (
	NodeName   = attribute.Key("metal.node.name")
	nodeUUID   = attribute.Key("metal.node.uuid")
	State      = attribute.Key("ironic.provision_state")
	Step       = attribute.Key("ironic.step")
	RequestID  = attribute.Key("openstack.request_id")
	Resource   = attribute.Key("terraform.resource.type")
	Terraform  = attribute.Key("terraform.version")
	SlotLimit  = attribute.Key("metal.limit.max_concurrent")
	ReadyCheck = attribute.Key("metal.ready_check")
	Attempts   = attribute.Key("metal.ready_check.attempts")
)

// subject is the key of the attributes of what the spans below a context are about.
type subject struct{}

// AboutNode returns a context for spans about a node: Start gives them its name and UUID.
func AboutNode(ctx context.Context, name, uuid string) context.Context {
	if !trace.SpanFromContext(ctx).IsRecording() {
		return ctx
	}
	return context.WithValue(ctx, subject{}, []attribute.KeyValue{NodeName.String(name), nodeUUID.String(uuid)})
}

// AboutSeveral returns a context for spans about more than the node that ctx is about.
func AboutSeveral(ctx context.Context) context.Context {
	if ctx.Value(subject{}) == nil {
		return ctx
	}
	return context.WithValue(ctx, subject{}, nil)
}

// Start begins a span below the one in ctx. Without a span in ctx that records, it returns ctx and a span that does nothing.
func Start(ctx context.Context, name string, options ...trace.SpanStartOption) (context.Context, trace.Span) {
	parent := trace.SpanFromContext(ctx)
	if !parent.IsRecording() {
		return ctx, parent
	}
	if about, is := ctx.Value(subject{}).([]attribute.KeyValue); is {
		options = append(options, trace.WithAttributes(about...))
	}
	return parent.TracerProvider().Tracer(Scope).Start(ctx, name, options...)
}

// End ends a span that Start has returned, with the error of what it is about. It leaves a parent that Start returned as it is.
func End(span trace.Span, err error) {
	if !span.IsRecording() {
		return
	}
	if err != nil {
		Fail(span, kindOf(err), err.Error())
	}
	span.End()
}

// Fail gives a span the status of an error of a kind.
func Fail(span trace.Span, kind, text string) {
	span.SetAttributes(semconv.ErrorTypeKey.String(kind))
	span.SetStatus(codes.Error, text)
}

// kindOf returns the error.type of an error: what the error itself says, or "_OTHER" as the conventions have it.
func kindOf(err error) string {
	var typed interface{ ErrorType() string }
	switch {
	case errors.As(err, &typed) && typed.ErrorType() != "":
		return typed.ErrorType()
	case errors.Is(err, context.Canceled):
		return "stopped"
	case errors.Is(err, context.DeadlineExceeded):
		return "time-out"
	}
	return semconv.ErrorTypeOther.Value.AsString()
}
