package export

import (
	"context"
	"slices"

	"go.opentelemetry.io/otel/attribute"
	sdk "go.opentelemetry.io/otel/sdk/trace"
)

// cleaner is an exporter that gets all texts of spans without secrets. It tells of errors.
type cleaner struct {
	sdk.SpanExporter
	clean  func(string) string
	errors *reporter
}

// ExportSpans cleans the spans and exports them. It tells the run of an error and returns none: the SDK would pass it to the handler of the whole
// process, which by then may be that of another run.
func (c *cleaner) ExportSpans(ctx context.Context, spans []sdk.ReadOnlySpan) error {
	cleaned := make([]sdk.ReadOnlySpan, len(spans))
	for i, span := range spans {
		cleaned[i] = &cleanSpan{span, c.clean}
	}
	if err := c.SpanExporter.ExportSpans(ctx, cleaned); err != nil {
		c.errors.Handle(err)
	}
	return nil
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
