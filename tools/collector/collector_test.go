// Package collector_test sends traces through a real collector of OpenTelemetry, which runs in the test process.
package collector_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/provider/yamlprovider"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/exporter/otlphttpexporter"
	"go.opentelemetry.io/collector/otelcol"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/otlpreceiver"
	"go.opentelemetry.io/collector/service/telemetry"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/tracing"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/tracing/export"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/tracingtest"
)

// configuration of a collector that receives spans over gRPC and HTTP, and passes each request on before it answers.
const configuration = `yaml:
receivers: {otlp: {protocols: {grpc: {endpoint: %q}, http: {endpoint: %q}}}}
exporters: {otlp_http: {endpoint: %q, sending_queue: {enabled: false}}}
service:
  pipelines: {traces: {receivers: [otlp], exporters: [otlp_http]}}
`

// collect runs a collector until the test ends.
func collect(t *testing.T, grpc, http, next string) {
	t.Helper()
	c, err := otelcol.NewCollector(otelcol.CollectorSettings{
		BuildInfo: component.BuildInfo{Command: "collector", Version: "test"},
		Factories: func() (otelcol.Factories, error) {
			in, out := otlpreceiver.NewFactory(), otlphttpexporter.NewFactory()
			return otelcol.Factories{
				Telemetry: telemetry.NewFactory(func() component.Config { return &struct{}{} }), // of the collector itself: none
				Receivers: map[component.Type]receiver.Factory{in.Type(): in},
				Exporters: map[component.Type]exporter.Factory{out.Type(): out},
			}, nil
		},
		DisableGracefulShutdown: true,
		ConfigProviderSettings: otelcol.ConfigProviderSettings{ResolverSettings: confmap.ResolverSettings{
			URIs:              []string{fmt.Sprintf(configuration, grpc, http, next)},
			ProviderFactories: []confmap.ProviderFactory{yamlprovider.NewFactory()},
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	ctx, stop := context.WithCancel(context.Background())
	go func() { ended <- c.Run(ctx) }()
	for c.GetState() != otelcol.StateRunning {
		select {
		case err := <-ended:
			t.Fatal("the collector has ended: ", err)
		case <-time.After(10 * time.Millisecond):
		}
	}
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// free returns an address that nothing listens on.
func free(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

func TestTraces_passThroughARealCollector(t *testing.T) {
	behind := tracingtest.StartCollector(t)
	grpc, http := free(t), free(t)
	collect(t, grpc, http, behind.URL)
	for protocol, endpoint := range map[string]string{"grpc": "http://" + grpc, "http/protobuf": "http://" + http} {
		t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint)
		t.Setenv("OTEL_EXPORTER_OTLP_PROTOCOL", protocol)
		run := export.Start(t.Context(), os.Getenv, export.Program{
			Name: "terraform-provider-metal", Version: "1.2.3", Clean: strings.TrimSpace, Report: func(err error) { t.Error(err) },
		})
		_, call := run.Call(t.Context(), "create over "+protocol, true, tracing.NodeName.String("node-0"))
		call.Fail("no space left on device")
		call.End(t.Context())
		run.Close(t.Context())
	}
	got := fmt.Sprint(behind.Received())
	for _, want := range []string{
		"create over grpc", "create over http/protobuf", "terraform-provider-metal", "1.2.3", "metal.node.name",
		"node-0", "no space left on device",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("behind the collector, %q is missing:\n%s", want, got)
		}
	}
}
