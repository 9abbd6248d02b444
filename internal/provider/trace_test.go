package provider_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"go.opentelemetry.io/otel/trace"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/tracing"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/tracing/export"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/provider"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/ironictest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/tracingtest"
)

// tracedSession is a session in virtual time, with the spans of its provider.
func tracedSession(t *testing.T, ironic *fakeironic.Server) (*session, *tracingtest.Spans) {
	t.Helper()
	s, spans := &session{TB: t, server: provider.NewServerOver("test", ironic), fake: ironic, url: "http://ironic.test"},
		tracingtest.NewSpans()
	s.server.Trace(tracing.NewRun(spans.Provider, trace.SpanContext{}, "terraform-provider-metal"))
	var err error
	if s.schemas, err = s.server.GetProviderSchema(t.Context(), &tfprotov6.GetProviderSchemaRequest{}); err != nil {
		t.Fatal(err)
	}
	s.configure(block{"poll_interval": "10s"})
	return s, spans
}

// A run has one span, below it one for each call, and below that one for each operation on a machine.
func TestTrace_hasCallsAndOperations(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		s, spans := tracedSession(t, &fakeironic.Server{StepTime: time.Minute})
		host, said := s.apply("metal_host", object{"name": "r1", "driver": "fake-hardware", "target_state": "available"}, nil)
		if failed(said) {
			t.Fatal(describe(said))
		}
		_, said = s.apply("metal_deployment", object{"node_id": s.text(host, "id"), "image": object{
			"url":      "http://images/a.qcow2",
			"checksum": "http://images/SUMS",
		}}, nil)
		if failed(said) {
			t.Fatal(describe(said))
		}
		s.server.Close(t.Context())
		spans.Want(t, `
terraform-provider-metal 4m11s
  create metal_host 3m8s
    provide 2m5s
      state verifying 1m0s
      state enroll 0s
      verb manage 0s
      state manageable 3s
      admissions 0s
      wait for a slot 0s
      state cleaning 1m0s
      verb provide 0s
      state available 3s
    power off 1m3s
      state available 1m3s
      switch the machine off 0s
  configure provider 0s
  plan metal_host 0s
  create metal_deployment 1m3s
    deploy 1m3s
      admissions 0s
      wait for a slot 0s
      state available 0s
      state deploying 1m0s
      verb active 0s
      state active 3s
  plan metal_deployment 0s
`)
	})
}

func TestTrace_callThatFailsHasTheStatus(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		s, spans := tracedSession(t, &fakeironic.Server{})
		if _, said := s.apply("metal_deployment", object{"node_id": "no-such-node", "image": object{
			"url":      "http://images/a.qcow2",
			"checksum": "http://images/SUMS",
		}}, nil); !failed(said) {
			t.Fatal("the deployment has succeeded")
		}
		s.server.Close(t.Context())
		if tree := spans.Tree(); !strings.Contains(tree, "metal_deployment 0s !_OTHER") {
			t.Errorf("no call has the status of an error:\n%s", tree)
		}
	})
}

// What is secret is in no span that leaves the process, although Ironic quotes it, and although a machine has the same name. No span has
// user data, secret or not.
func TestTrace_hasNoSecretsAndNoUserData(t *testing.T) {
	collector := tracingtest.StartCollector(t)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.URL)
	s := &session{TB: t, server: provider.NewServer("test")}
	s.server.Trace(export.Start(t.Context(), os.Getenv, export.Program{Name: "test", Clean: s.server.CleanLine, Report: func(err error) {
		t.Error(err)
	}}))
	other := startSessionOn(t, quoting(), nil)
	s.schemas, s.url, s.fake = other.schemas, other.url, other.fake
	s.configure(nil)
	for _, config := range []object{
		{
			"name": "r1", "driver": "fake-hardware", "driver_info_wo": object{"redfish_password": "hunter2-password"},
			"driver_info_wo_version": "1",
		},
		{
			"name": "swordfish-1", "driver": "fake-hardware", "target_state": "available",
			"driver_info_wo": object{"redfish_password": "swordfish-1"}, "driver_info_wo_version": "1",
		},
	} {
		host, said := s.apply("metal_host", config, nil)
		if config["name"] == "r1" {
			if !failed(said) {
				t.Fatal("Ironic has not quoted the secret")
			}
			continue
		}
		for _, data := range []string{"#cloud-config canary-of-user-data", "#cloud-config hunter2-of-user-data"} {
			_, _ = s.apply("metal_deployment", object{
				"node_id": s.text(host, "id"), "image": object{
					"url":      "http://images/a.qcow2?token=canary-token",
					"checksum": "http://images/SUMS",
				}, "config_drive": object{"user_data": data},
			}, nil)
		}
	}
	s.server.Close(t.Context())
	sent := fmt.Sprint(collector.Received())
	if !strings.Contains(sent, "create metal_deployment") || !strings.Contains(sent, "verb active") || !strings.Contains(sent, "******") {
		t.Errorf("the collector lacks spans:\n%s", sent)
	}
	for _, secret := range []string{"hunter2", "canary", "swordfish"} {
		if i := strings.Index(sent, secret); i >= 0 {
			t.Errorf("a span has %q", sent[max(0, i-200):min(len(sent), i+100)])
		}
	}
}
