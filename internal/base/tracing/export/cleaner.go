package export

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"

	"go.opentelemetry.io/otel/attribute"
	sdk "go.opentelemetry.io/otel/sdk/trace"
)

// cleaner is an exporter that gets all texts of spans without secrets. It tells of errors.
type cleaner struct {
	sdk.SpanExporter
	clean  func(string) string
	errors *reporter
	tried  atomic.Int64 // spans of deliveries that have ended
}

// ExportSpans cleans the spans and exports them. It tells the run of an error and returns none: the SDK would pass it to the handler of the
// whole process, which by then may be that of another run.
func (c *cleaner) ExportSpans(ctx context.Context, spans []sdk.ReadOnlySpan) error {
	cleaned := make([]sdk.ReadOnlySpan, len(spans))
	for i, span := range spans {
		cleaned[i] = &cleanSpan{span, c.clean}
	}
	if err := c.SpanExporter.ExportSpans(ctx, cleaned); err != nil {
		c.errors.Handle(err)
	}
	c.tried.Add(int64(len(spans)))
	return nil
}

// counter is a processor that tells at the end how many spans were never delivered: the SDK drops spans without a word when its queue is
// full.
type counter struct {
	sdk.SpanProcessor
	to    *cleaner
	ended atomic.Int64
}

// OnEnd counts a span that is to be delivered.
func (c *counter) OnEnd(span sdk.ReadOnlySpan) {
	if span.SpanContext().IsSampled() {
		c.ended.Add(1)
	}
	c.SpanProcessor.OnEnd(span)
}

// Shutdown delivers what is left.
func (c *counter) Shutdown(ctx context.Context) error {
	err := c.SpanProcessor.Shutdown(ctx)
	if all := c.ended.Load(); c.to.tried.Load() < all {
		c.to.errors.Handle(fmt.Errorf("%d of %d spans are lost, because the collector takes them too slowly. OTEL_BSP_MAX_QUEUE_SIZE, "+
			"by default 2048, is how many wait for it", all-c.to.tried.Load(), all))
	}
	return err
}

// cleanSpan is a span whose texts have no secrets.
type cleanSpan struct {
	sdk.ReadOnlySpan
	clean func(string) string
}

// Name returns the name of the span.
func (s *cleanSpan) Name() string { return s.clean(s.ReadOnlySpan.Name()) }

// Attributes returns the attributes of the span.
func (s *cleanSpan) Attributes() []attribute.KeyValue {
	return cleanAll(s.ReadOnlySpan.Attributes(), s.clean)
}

// Status returns the status of the span, which may have the text of an error.
func (s *cleanSpan) Status() sdk.Status {
	status := s.ReadOnlySpan.Status()
	status.Description = s.clean(status.Description)
	return status
}

// Events returns the events of the span.
func (s *cleanSpan) Events() []sdk.Event {
	events := slices.Clone(s.ReadOnlySpan.Events())
	for i := range events {
		events[i].Name, events[i].Attributes = s.clean(events[i].Name), cleanAll(events[i].Attributes, s.clean)
	}
	return events
}

func cleanAll(attributes []attribute.KeyValue, clean func(string) string) []attribute.KeyValue {
	attributes = slices.Clone(attributes)
	for i, a := range attributes {
		if a.Value.Type() == attribute.STRING {
			attributes[i].Value = attribute.StringValue(clean(a.Value.AsString()))
		}
	}
	return attributes
}
