// Package tracingtest has what tests of traces share: spans in memory, and what they say. It is imported by tests only.
package tracingtest

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
)

// Spans are the spans of a test that have ended.
type Spans struct {
	*tracetest.SpanRecorder
	Provider *sdk.TracerProvider
}

// NewSpans returns a provider of spans, which sends them nowhere.
func NewSpans() *Spans {
	recorder := tracetest.NewSpanRecorder()
	return &Spans{recorder, sdk.NewTracerProvider(sdk.WithSpanProcessor(recorder))}
}

// Under returns a context with a span, and a function that ends it.
func (s *Spans) Under(ctx context.Context, name string) (below context.Context, end func()) {
	ctx, span := s.Provider.Tracer("test").Start(ctx, name)
	return ctx, func() { span.End() }
}

// Tree has a line for each span, indented below its parent, in the order in which they began: name, duration, kind of error.
func (s *Spans) Tree() string {
	var text strings.Builder
	all := s.Ended()
	slices.SortStableFunc(all, func(a, b sdk.ReadOnlySpan) int {
		return cmp.Or(a.StartTime().Compare(b.StartTime()), b.EndTime().Compare(a.EndTime()), cmp.Compare(a.Name(), b.Name()))
	})
	var write func(parent, indent string)
	write = func(parent, indent string) {
		for _, span := range all {
			if span.Parent().SpanID().String() != parent {
				continue
			}
			fmt.Fprintf(&text, "%s%s %s%s\n", indent, span.Name(), span.EndTime().Sub(span.StartTime()).Round(time.Second), failureOf(span))
			write(span.SpanContext().SpanID().String(), indent+"  ")
		}
	}
	write("0000000000000000", "")
	return text.String()
}

func failureOf(span sdk.ReadOnlySpan) string {
	if span.Status().Code != codes.Error {
		return ""
	}
	set := attribute.NewSet(span.Attributes()...)
	kind, _ := set.Value("error.type")
	return " !" + kind.AsString()
}

// Paths has a line for each span: its name and, in parentheses, the machine that it is about, after those of the spans above it.
func (s *Spans) Paths() (all []string) {
	ended := map[string]sdk.ReadOnlySpan{}
	for _, span := range s.Ended() {
		ended[span.SpanContext().SpanID().String()] = span
	}
	for _, span := range ended {
		path := ""
		for is := true; is; span, is = ended[span.Parent().SpanID().String()] {
			set := attribute.NewSet(span.Attributes()...)
			node, _ := set.Value("metal.node.name")
			path = fmt.Sprintf(" > %s (%s)%s", span.Name(), node.AsString(), path)
		}
		all = append(all, strings.TrimPrefix(path, " > "))
	}
	slices.Sort(all)
	return all
}

// Texts are all that the spans say.
func (s *Spans) Texts() (all []string) {
	add := func(attributes []attribute.KeyValue) {
		for _, a := range attributes {
			all = append(all, string(a.Key)+"="+a.Value.String())
		}
	}
	for _, span := range s.Ended() {
		all = append(all, span.Name(), span.Status().Description)
		add(span.Attributes())
		for _, event := range span.Events() {
			all = append(all, event.Name)
			add(event.Attributes)
		}
	}
	return all
}

// Want fails the test unless the tree of the spans is as expected.
func (s *Spans) Want(t *testing.T, tree string) {
	t.Helper()
	if got := s.Tree(); got != strings.TrimPrefix(tree, "\n") {
		t.Errorf("the spans are\n%s\nwant\n%s", got, strings.TrimPrefix(tree, "\n"))
	}
}
