// Package export sends the spans of a run to the collector that the standard variables of OpenTelemetry name, and only then.
package export

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/exporters/stdout/stdouttrace"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/tracing"
)

// Program is what a run is a run of.
type Program struct {
	Name, Version string
	Clean         func(text string) string // returns a text without secrets, on one line
	Console       io.Writer                // for OTEL_TRACES_EXPORTER=console
	Report        func(err error)          // is told of the first error of the settings or of a delivery
}

// batchDelay is how long an ended span waits for others. A process may be killed at any time, so it is shorter than the SDK's five seconds.
const batchDelay = time.Second

// Start returns the run of a program; nil if the variables ask for no traces, or for what it does not know. The SDK reads the other
// variables, such as OTEL_RESOURCE_ATTRIBUTES, from the environment of the process itself. Start makes no request.
func Start(ctx context.Context, getenv func(string) string, p Program) *tracing.Run {
	once := &reporter{report: p.Report}
	otel.SetLogger(logr.New(sink{once})) // else the SDK writes the values of variables to stderr
	exporters, err := exporters(ctx, getenv, p.Console)
	if err != nil {
		once.Handle(err)
		return nil
	}
	if len(exporters) == 0 {
		return nil
	}
	otel.SetErrorHandler(once) // else the SDK writes every error to stderr
	is, err := resource.New(ctx, resource.WithTelemetrySDK(), resource.WithHost(),
		resource.WithAttributes(semconv.ServiceName(p.Name), semconv.ServiceVersion(p.Version)), resource.WithFromEnv())
	if err != nil {
		once.Handle(err) // is usable nevertheless
	}
	options := []sdk.TracerProviderOption{sdk.WithResource(is)}
	for _, exporter := range exporters {
		cleaner := &cleaner{SpanExporter: exporter, clean: p.Clean, errors: once}
		options = append(options, sdk.WithSpanProcessor(&counter{
			SpanProcessor: sdk.NewBatchSpanProcessor(cleaner, delay(getenv)...),
			to:            cleaner,
		}))
	}
	return tracing.NewRun(sdk.NewTracerProvider(options...), parent(ctx, getenv), p.Name)
}

// delay returns batchDelay as an option, unless the environment has another.
func delay(getenv func(string) string) []sdk.BatchSpanProcessorOption {
	if getenv("OTEL_BSP_SCHEDULE_DELAY") != "" {
		return nil
	}
	return []sdk.BatchSpanProcessorOption{sdk.WithBatchTimeout(batchDelay)}
}

// parent returns the span of the program that has started this one; an invalid one if there is none.
func parent(ctx context.Context, getenv func(string) string) trace.SpanContext {
	// No CLI hands its trace to a provider (reference/terraform.md#traces-of-the-clis), so only the environment names one.
	carrier := propagation.MapCarrier{"traceparent": getenv("TRACEPARENT"), "tracestate": getenv("TRACESTATE")}
	return trace.SpanContextFromContext(propagation.TraceContext{}.Extract(ctx, carrier))
}

// exporters returns those that the environment asks for.
func exporters(ctx context.Context, getenv func(string) string, console io.Writer) (all []sdk.SpanExporter, err error) {
	if strings.EqualFold(getenv("OTEL_SDK_DISABLED"), "true") {
		return nil, nil
	}
	names := getenv("OTEL_TRACES_EXPORTER")
	if names == "" && cmp.Or(getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"), getenv("OTEL_EXPORTER_OTLP_ENDPOINT")) != "" {
		names = "otlp"
	}
	for name := range strings.SplitSeq(names, ",") {
		var exporter sdk.SpanExporter
		switch name = strings.TrimSpace(name); name {
		case "", "none":
			continue
		case "otlp":
			exporter, err = otlp(ctx, getenv)
		case "console":
			exporter, err = stdouttrace.New(stdouttrace.WithWriter(console))
		default:
			err = fmt.Errorf("OTEL_TRACES_EXPORTER has %q. It can be otlp, console or none", name)
		}
		if err != nil {
			return nil, err
		}
		all = append(all, exporter)
	}
	return all, nil
}

// otlp returns the exporter for the protocol that the environment names. Both read their other settings from the environment.
func otlp(ctx context.Context, getenv func(string) string) (sdk.SpanExporter, error) {
	switch protocol := cmp.Or(getenv("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"), getenv("OTEL_EXPORTER_OTLP_PROTOCOL"),
		"http/protobuf"); protocol {
	case "http/protobuf":
		if err := checkEndpoint(getenv); err != nil {
			return nil, err
		}
		return otlptracehttp.New(ctx)
	case "grpc":
		return otlptracegrpc.New(ctx)
	default:
		return nil, fmt.Errorf("OTEL_EXPORTER_OTLP_PROTOCOL is %q. It can be http/protobuf or grpc", protocol)
	}
}

// checkEndpoint returns an error unless the endpoint for OTLP over HTTP is a URL. The error does not contain the value, which may have a
// password.
func checkEndpoint(getenv func(string) string) error {
	for _, name := range []string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"} {
		value := getenv(name)
		if value == "" {
			continue
		}
		if to, err := url.Parse(value); err != nil || to.Host == "" || to.Scheme != "http" && to.Scheme != "https" {
			return fmt.Errorf("%s is not a URL of a collector. It begins with http:// or https://, such as http://localhost:4318", name)
		}
		return nil
	}
	return nil
}

// reporter passes the first error on. The others are probably the same.
type reporter struct {
	once   sync.Once
	report func(error)
}

// Handle takes an error of the SDK.
func (r *reporter) Handle(err error) {
	r.once.Do(func() { r.report(fmt.Errorf("traces: %w", err)) })
}
