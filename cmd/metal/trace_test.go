package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/cmd/metal/cli"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/tracingtest"
)

// The SDK reads the environment of the process, so this test cannot run beside others.
func TestTrace_hasCommandAndOperation(t *testing.T) {
	collector := tracingtest.StartCollector(t)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.URL)
	s := newSite(t, 1)
	s.ironic.StepTime = 0
	s.ironic.Set("node-000", "power_state", "power off")
	s.env["OTEL_EXPORTER_OTLP_ENDPOINT"] = collector.URL
	if code, _, stderr := s.run(t, "power", "on", "node-000", "--poll-interval", "10ms"); code != cli.ExitDone {
		t.Fatalf("exit code %d, said %q", code, stderr)
	}
	names := collector.Names()
	for _, want := range []string{"metal", "metal power on", "power on", "switch the machine on"} {
		if !slices.Contains(names, want) {
			t.Errorf("the collector has %q, without %q", names, want)
		}
	}
	if sent := fmt.Sprint(collector.Received()); strings.Contains(sent, password) {
		t.Errorf("a span has the password:\n%s", sent)
	}
}

func TestTrace_failedCommandHasTheStatus(t *testing.T) {
	collector := tracingtest.StartCollector(t)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.URL)
	s := newSite(t, 1)
	s.env["OTEL_EXPORTER_OTLP_ENDPOINT"] = collector.URL
	if code, _, _ := s.run(t, "console", "no-such-node"); code == cli.ExitDone {
		t.Fatal("the command has succeeded")
	}
	if sent := fmt.Sprint(collector.Received()); !strings.Contains(sent, "STATUS_CODE_ERROR") {
		t.Errorf("no span has the status of an error:\n%s", sent)
	}
}
