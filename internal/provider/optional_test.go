package provider

import (
	"context"
	"errors"
	"iter"
	"reflect"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
)

// optional are the interfaces that tf6server looks for by type assertion.
var optional = []reflect.Type{
	reflect.TypeFor[tfprotov6.ListResourceServer](), reflect.TypeFor[tfprotov6.ActionServer](),
}

// The inner server has no method at all, so that a call which reaches it panics. That must become a diagnostic, of the
// answer or in the stream.
func TestServer_guardsOptionalCalls(t *testing.T) {
	t.Parallel()
	for _, calls := range optional {
		for i := range calls.NumMethod() {
			method := calls.Method(i)
			t.Run(method.Name, func(t *testing.T) {
				t.Parallel()
				s := reflect.ValueOf(&Server{ProviderServer: &clumsy{}})
				request := reflect.New(method.Type.In(1).Elem())
				answer := s.MethodByName(method.Name).Call([]reflect.Value{reflect.ValueOf(t.Context()), request})
				if err := answer[1]; !err.IsNil() {
					t.Fatalf("error %v, want a diagnostic", err)
				}
				said := saidIn(t, answer[0].Interface())
				if len(said) != 1 || !strings.Contains(said[0].Detail, "The provider panicked: runtime error: invalid memory address") {
					t.Errorf("diagnostics %v, want one of the panic", said)
				}
			})
		}
	}
}

// saidIn are the diagnostics of an answer, or of the only event of a stream; the error of a function as one.
func saidIn(t *testing.T, answer any) (said []*tfprotov6.Diagnostic) {
	t.Helper()
	switch answer := answer.(type) {
	case *tfprotov6.ListResourceServerStream:
		for event := range answer.Results {
			said = append(said, event.Diagnostics...)
		}
	case *tfprotov6.InvokeActionServerStream:
		for event := range answer.Events {
			done, ok := event.Type.(tfprotov6.CompletedInvokeActionEventType)
			if !ok {
				t.Fatalf("event %v does not complete the action", event)
			}
			said = append(said, done.Diagnostics...)
		}
	case *tfprotov6.CallFunctionResponse:
		said = []*tfprotov6.Diagnostic{{Detail: answer.Error.Text}}
	default:
		said, _ = reflect.ValueOf(answer).Elem().FieldByName("Diagnostics").Interface().([]*tfprotov6.Diagnostic)
	}
	return said
}

// lister answers ListResource with a stream.
type lister struct {
	clumsy
	results iter.Seq[tfprotov6.ListResourceResult]
	err     error
}

func (l *lister) ListResource(ctx context.Context, _ *tfprotov6.ListResourceRequest) (*tfprotov6.ListResourceServerStream, error) {
	l.kept = append(l.kept, ctx)
	return &tfprotov6.ListResourceServerStream{Results: l.results}, l.err
}

// list calls ListResource of a guarded lister.
func (l *lister) list(t *testing.T) iter.Seq[tfprotov6.ListResourceResult] {
	t.Helper()
	ctx := context.WithValue(t.Context(), key{}, "what hangs on it")
	stream, err := (&Server{ProviderServer: l}).ListResource(ctx, &tfprotov6.ListResourceRequest{})
	if err != nil {
		t.Fatal(err)
	}
	return stream.Results
}

// held reports whether the context of the call still works.
func (l *lister) held() bool { return l.kept[0].Value(key{}) != nil && l.kept[0].Err() == nil }

func TestServer_streamKeepsContext(t *testing.T) {
	t.Parallel()
	l := &lister{}
	l.results = func(yield func(tfprotov6.ListResourceResult) bool) {
		for _, name := range []string{"a", "b", "c"} {
			if !l.held() {
				t.Error("the context has ended before the stream")
			}
			if !yield(tfprotov6.ListResourceResult{DisplayName: name}) {
				return
			}
		}
	}
	results := l.list(t)
	if !l.held() {
		t.Error("the context has ended with the call")
	}
	var names []string
	for result := range results {
		if names = append(names, result.DisplayName); len(names) == 2 {
			break
		}
	}
	if got := strings.Join(names, " "); got != "a b" {
		t.Errorf("results %q, want a b", got)
	}
	if l.held() {
		t.Error("the context still holds on to what hangs on it after the stream")
	}
}

func TestServer_panicEndsStream(t *testing.T) {
	t.Parallel()
	l := &lister{results: func(yield func(tfprotov6.ListResourceResult) bool) {
		yield(tfprotov6.ListResourceResult{DisplayName: "a"})
		panic("index out of range")
	}}
	var events []tfprotov6.ListResourceResult
	for event := range l.list(t) {
		events = append(events, event)
	}
	if len(events) != 2 || events[0].DisplayName != "a" {
		t.Fatalf("events %v, want the result and the panic", events)
	}
	wantBug(t, events[1].Diagnostics, nil)
	if l.held() {
		t.Error("the context still holds on to what hangs on it after the panic")
	}
}

func TestServer_panicAfterReaderLeft(t *testing.T) {
	t.Parallel()
	l := &lister{results: func(yield func(tfprotov6.ListResourceResult) bool) {
		defer panic("while cleaning up")
		yield(tfprotov6.ListResourceResult{})
	}}
	count := 0
	for range l.list(t) {
		count++
		break
	}
	if count != 1 {
		t.Errorf("%d events, want 1", count)
	}
}

func TestServer_panicOfStreamReader(t *testing.T) {
	t.Parallel()
	l := &lister{results: func(yield func(tfprotov6.ListResourceResult) bool) { yield(tfprotov6.ListResourceResult{}) }}
	defer func() {
		if r := recover(); r != "reader" {
			t.Errorf("recovered %v, want the panic of the reader", r)
		}
	}()
	for range l.list(t) {
		panic("reader")
	}
}

func TestServer_failedStreamEndsContext(t *testing.T) {
	t.Parallel()
	l := &lister{err: errors.New("no list")}
	stream, err := (&Server{ProviderServer: l}).ListResource(context.WithValue(t.Context(), key{}, 1), &tfprotov6.ListResourceRequest{})
	if stream != nil || !errors.Is(err, l.err) {
		t.Errorf("stream %v, error %v, want that of the framework", stream, err)
	}
	if l.held() {
		t.Error("the context still holds on to what hangs on it")
	}
}
