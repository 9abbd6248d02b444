package tracingtest

import (
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	trace "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
)

// Collector receives spans by OTLP, as a collector does. It is an http.Handler.
type Collector struct {
	collector.UnimplementedTraceServiceServer

	URL string // over HTTP

	mu       sync.Mutex
	received []*trace.ResourceSpans
}

// StartCollector starts a collector, which ends with the test.
func StartCollector(t testing.TB) *Collector {
	t.Helper()
	c := &Collector{}
	server := httptest.NewServer(c)
	t.Cleanup(server.Close)
	c.URL = server.URL
	return c
}

// ServeHTTP receives the spans of a request.
func (c *Collector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	from := io.Reader(r.Body)
	if r.Header.Get("Content-Encoding") == "gzip" {
		unzipped, err := gzip.NewReader(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		from = unzipped
	}
	body, err := io.ReadAll(from)
	request := &collector.ExportTraceServiceRequest{}
	if err != nil || r.URL.Path != "/v1/traces" || proto.Unmarshal(body, request) != nil {
		http.Error(w, fmt.Sprintf("not spans, at %s", r.URL.Path), http.StatusBadRequest)
		return
	}
	_, _ = c.Export(r.Context(), request)
	w.Header().Set("Content-Type", "application/x-protobuf")
}

// ServeGRPC also receives spans over gRPC, at the address that it returns.
func (c *Collector) ServeGRPC(t testing.TB) (address string) {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	collector.RegisterTraceServiceServer(server, c)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	return listener.Addr().String()
}

// Export keeps the spans of a request.
func (c *Collector) Export(_ context.Context, r *collector.ExportTraceServiceRequest) (*collector.ExportTraceServiceResponse, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.received = append(c.received, r.ResourceSpans...)
	return &collector.ExportTraceServiceResponse{}, nil
}

// Received returns what has arrived so far.
func (c *Collector) Received() []*trace.ResourceSpans {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.received)
}

// Names are the names of the spans that have arrived so far, sorted.
func (c *Collector) Names() (names []string) {
	for _, resource := range c.Received() {
		for _, scope := range resource.ScopeSpans {
			for _, span := range scope.Spans {
				names = append(names, span.Name)
			}
		}
	}
	slices.Sort(names)
	return names
}
