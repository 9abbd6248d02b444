package export_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/trace"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/tracing"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/tracing/export"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/tracingtest"
)

// secret is a word that Clean removes.
const secret = "hunter2"

// start starts a run in an environment. The SDK reads that of the process, so that tests cannot run beside each other.
func start(t *testing.T, environment map[string]string, console io.Writer) (run *tracing.Run, reported *[]string) {
	t.Helper()
	for name, value := range environment {
		t.Setenv(name, value)
	}
	reported = &[]string{}
	run = export.Start(t.Context(), func(name string) string { return environment[name] }, export.Program{
		Name: "terraform-provider-metal", Version: "1.2.3", Console: console,
		Clean:  func(text string) string { return strings.ReplaceAll(text, secret, "******") },
		Report: func(err error) { *reported = append(*reported, err.Error()) },
	})
	return run, reported
}

// create makes a call that fails, with an attribute and an event. All of them have the secret.
func create(t *testing.T, run *tracing.Run) {
	t.Helper()
	ctx, call := run.Call(t.Context(), "create "+secret, true, tracing.NodeName.String("node-"+secret))
	trace.SpanFromContext(ctx).AddEvent("step "+secret, trace.WithAttributes(tracing.Step.String(secret)))
	call.Fail("password " + secret)
	call.End(t.Context())
}

func TestStart_sendsSpansToTheCollector(t *testing.T) {
	for _, protocol := range []string{"http/protobuf", "grpc"} {
		t.Run(protocol, func(t *testing.T) {
			c := tracingtest.StartCollector(t)
			endpoint := c.URL
			if protocol == "grpc" {
				endpoint = "http://" + c.ServeGRPC(t)
			}
			run, reported := start(t, map[string]string{
				"OTEL_EXPORTER_OTLP_ENDPOINT": endpoint, "OTEL_EXPORTER_OTLP_PROTOCOL": protocol,
				"OTEL_RESOURCE_ATTRIBUTES": "deployment.environment.name=lab",
				"TRACEPARENT":              "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "TRACESTATE": "vendor=7",
			}, nil)
			create(t, run)
			if got := c.Names(); !slices.Equal(got, []string{"create ******"}) {
				t.Errorf("when the call has answered, the collector has %q", got)
			}
			run.Close(t.Context())
			if got := c.Names(); !slices.Equal(got, []string{"create ******", "terraform-provider-metal"}) {
				t.Errorf("at the end of the run, the collector has %q", got)
			}
			got := fmt.Sprint(c.Received())
			for _, want := range []string{
				"1.2.3", "deployment.environment.name", "host.name", "node-******", "password ******",
				"step ******", "vendor=7", "_OTHER",
			} {
				if !strings.Contains(got, want) {
					t.Errorf("the collector lacks %q:\n%s", want, got)
				}
			}
			for _, resource := range c.Received() {
				for _, span := range resource.ScopeSpans[0].Spans {
					if id := fmt.Sprintf("%x", span.TraceId); id != "0af7651916cd43dd8448eb211c80319c" {
						t.Errorf("span %q is in trace %s", span.Name, id)
					}
				}
			}
			if strings.Contains(got, secret) || len(*reported) > 0 {
				t.Errorf("the collector has a secret, or there are errors %q:\n%s", *reported, got)
			}
		})
	}
}

func TestStart_isOffUnlessAsked(t *testing.T) {
	for _, environment := range []map[string]string{
		{},
		{"TRACEPARENT": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"},
		{"OTEL_TRACES_EXPORTER": "none", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://192.0.2.1"},
		{"OTEL_SDK_DISABLED": "true", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://192.0.2.1"},
	} {
		t.Run(fmt.Sprint(environment), func(t *testing.T) {
			if run, reported := start(t, environment, nil); run != nil || len(*reported) > 0 {
				t.Errorf("there are traces, or errors %q", *reported)
			}
		})
	}
}

func TestStart_tellsOfWrongSettings(t *testing.T) {
	for _, tt := range []struct {
		environment map[string]string
		want        string
	}{
		{map[string]string{"OTEL_TRACES_EXPORTER": "zipkin"}, `traces: OTEL_TRACES_EXPORTER has "zipkin". It can be otlp, console or none`},
		{
			map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "localhost:4318"},
			`traces: OTEL_EXPORTER_OTLP_ENDPOINT is not a URL of a collector. It begins with http:// or https://, such as http://localhost:4318`,
		},
		{
			map[string]string{
				"OTEL_EXPORTER_OTLP_ENDPOINT": "http://localhost:4318",
				"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "127.0.0.1:4318/" +
					secret,
			},
			`traces: OTEL_EXPORTER_OTLP_TRACES_ENDPOINT is not a URL of a collector. It begins with http:// or https://, such as http://localhost:4318`,
		},
		{
			map[string]string{"OTEL_TRACES_EXPORTER": "otlp", "OTEL_EXPORTER_OTLP_PROTOCOL": "http/json"},
			`traces: OTEL_EXPORTER_OTLP_PROTOCOL is "http/json". It can be http/protobuf or grpc`,
		},
	} {
		t.Run(tt.want, func(t *testing.T) {
			if run, reported := start(t, tt.environment, nil); run != nil || !slices.Equal(*reported, []string{tt.want}) {
				t.Errorf("there are traces, or the errors are %q", *reported)
			}
		})
	}
}

// The SDK logs the value of a variable that it cannot read, which may be a token.
func TestStart_tellsNoValueOfAVariable(t *testing.T) {
	for _, headers := range []string{"Authorization: Bearer " + secret, "authorization=%zz" + secret} {
		t.Run(headers, func(t *testing.T) {
			run, reported := start(t, map[string]string{
				"OTEL_TRACES_EXPORTER": "otlp", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1",
				"OTEL_EXPORTER_OTLP_HEADERS": headers,
			}, nil)
			if run == nil || len(*reported) != 1 || strings.Contains((*reported)[0], secret) {
				t.Errorf("reported %q", *reported)
			}
		})
	}
}

func TestStart_writesToTheConsole(t *testing.T) {
	var text strings.Builder
	run, _ := start(t, map[string]string{"OTEL_TRACES_EXPORTER": "console"}, &text)
	create(t, run)
	run.Close(t.Context())
	if !strings.Contains(text.String(), "create ******") || strings.Contains(text.String(), secret) {
		t.Errorf("the console has %s", text.String())
	}
}

func TestStart_refusedSpansAreToldOnce(t *testing.T) {
	refusing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }))
	t.Cleanup(refusing.Close)
	run, reported := start(t, map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": refusing.URL}, nil)
	create(t, run)
	create(t, run)
	run.Close(t.Context())
	if len(*reported) != 1 || !strings.Contains((*reported)[0], "403") {
		t.Errorf("the errors are %q", *reported)
	}
}

// The collector takes nothing while spans end, so that the queue of two is full. What it misses is told at the end.
func TestStart_droppedSpansAreTold(t *testing.T) {
	c, takes := tracingtest.StartCollector(t), make(chan struct{})
	slow := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		<-takes
		c.ServeHTTP(w, r)
	}))
	t.Cleanup(slow.Close)
	run, reported := start(t, map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": slow.URL, "OTEL_BSP_MAX_QUEUE_SIZE": "2"}, nil)
	for range 10 {
		_, call := run.Call(t.Context(), "read", false)
		call.End(t.Context())
	}
	close(takes)
	run.Close(t.Context())
	want := fmt.Sprintf("traces: %d of 11 spans are lost", 11-len(c.Names()))
	if len(*reported) != 1 || !strings.HasPrefix((*reported)[0], want) || len(c.Names()) > 5 {
		t.Errorf("the collector has %q, reported %q, want %q", c.Names(), *reported, want)
	}
}

// A collector that accepts connections and never answers ends neither a call nor the run: without a limit, this test would not end.
func TestStart_collectorThatNeverAnswersHoldsNothingUp(t *testing.T) {
	silent, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = silent.Close() })
	run, _ := start(t, map[string]string{
		"OTEL_EXPORTER_OTLP_ENDPOINT": "http://" + silent.Addr().String(),
		"OTEL_BSP_EXPORT_TIMEOUT":     "86400000", "OTEL_EXPORTER_OTLP_TIMEOUT": "86400000",
	}, nil)
	create(t, run)
	create(t, run)
	run.Close(t.Context())
}
