// Command traces records a trace of an apply: it deploys two machines of a fake Ironic, of which one may be in progress at a time, and
// keeps the spans that the provider sends to a collector, as tools/diagrams draws them. Usage: make trace. It needs a CLI (see tools/cli).
package main

import (
	"cmp"
	"context"
	_ "embed" // the configuration
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	trace "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/tracingtest"
)

//go:embed main.tf
var configuration string

// stepTime is how long each transient state takes.
const stepTime = 4 * time.Second

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "traces:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	root, err := filepath.Abs("..")
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "traces.")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	collector := &tracingtest.Collector{}
	ironicURL, err := serve(ctx, &fakeironic.Server{StepTime: stepTime})
	if err != nil {
		return err
	}
	collectorURL, err := serve(ctx, collector)
	if err != nil {
		return err
	}
	ready, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	defer ready.Close()
	text := strings.ReplaceAll(configuration, "127.0.0.1:22", ready.Addr().String())
	if err := apply(ctx, root, dir, text, ironicURL, collectorURL); err != nil {
		return err
	}
	return write(filepath.Join(root, "tools", "diagrams", "trace.json"), spansOf(collector.Received()))
}

// serve serves on a free port until the program ends.
func serve(ctx context.Context, handler http.Handler) (url string, err error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: time.Second}
	go func() { _ = server.Serve(listener) }()
	return "http://" + listener.Addr().String(), nil
}

// apply builds the provider and applies the configuration.
func apply(ctx context.Context, root, dir, text, ironic, collector string) error {
	build := exec.CommandContext(ctx, "go", "build", "-o", filepath.Join(dir, "bin")+"/", ".")
	build.Dir = root
	if err := quietly(build); err != nil {
		return err
	}
	cli, err := exec.CommandContext(ctx, filepath.Join(root, "tools", "cli"), os.Getenv("CLI")).Output()
	if err != nil {
		return fmt.Errorf("tools/cli: %w", err)
	}
	rc := fmt.Sprintf("provider_installation {\n  dev_overrides { \"terraform-provider-metal/metal\" = %q }\n  direct {}\n}\n",
		filepath.Join(dir, "bin"))
	if err := errors.Join(os.WriteFile(filepath.Join(dir, "rc"), []byte(rc), 0o600), os.WriteFile(filepath.Join(dir, "main.tf"),
		[]byte(text), 0o600)); err != nil {
		return err
	}
	for _, target := range []string{"metal_host.web", "metal_deployment.web"} { // each is a run
		cmd := exec.CommandContext(ctx, strings.TrimSpace(string(cli)), "apply", "-auto-approve", "-no-color", "-target="+target)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "TF_CLI_CONFIG_FILE="+filepath.Join(dir, "rc"), "CHECKPOINT_DISABLE=1", "METAL_ENDPOINT="+ironic,
			"OTEL_EXPORTER_OTLP_ENDPOINT="+collector)
		if err := quietly(cmd); err != nil {
			return err
		}
	}
	return nil
}

// quietly runs a program, and shows what it says only if it fails.
func quietly(cmd *exec.Cmd) error {
	if said, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", filepath.Base(cmd.Path), err, said)
	}
	return nil
}

// span is a span as tools/diagrams reads it. Times are in milliseconds since the first span of the run.
type span struct {
	Name   string `json:"name"`
	Node   string `json:"node,omitempty"`
	Depth  int    `json:"depth"`
	Begins int64  `json:"begins"`
	Ends   int64  `json:"ends"`
}

// spansOf returns the spans of the last run, the one that changes something, each before those below it.
func spansOf(received []*trace.ResourceSpans) (all []span) {
	below, roots := map[string][]*trace.Span{}, []*trace.Span{}
	for _, resource := range received {
		for _, scope := range resource.ScopeSpans {
			for _, s := range scope.Spans {
				if len(s.ParentSpanId) == 0 {
					roots = append(roots, s)
				}
				below[string(s.ParentSpanId)] = append(below[string(s.ParentSpanId)], s)
			}
		}
	}
	run := slices.MaxFunc(roots, func(a, b *trace.Span) int { return cmp.Compare(a.StartTimeUnixNano, b.StartTimeUnixNano) })
	var add func(s *trace.Span, depth int)
	add = func(s *trace.Span, depth int) {
		at := func(t uint64) int64 { return int64(t-run.StartTimeUnixNano) / 1e6 } //nolint:gosec // an apply is short
		all = append(all, span{Name: s.Name, Node: nodeOf(s), Depth: depth, Begins: at(s.StartTimeUnixNano), Ends: at(s.EndTimeUnixNano)})
		children := below[string(s.SpanId)]
		slices.SortFunc(children, func(a, b *trace.Span) int { return cmp.Compare(a.StartTimeUnixNano, b.StartTimeUnixNano) })
		for _, child := range children {
			add(child, depth+1)
		}
	}
	add(run, 0)
	return all
}

func nodeOf(s *trace.Span) string {
	for _, a := range s.Attributes {
		if a.Key == "metal.node.name" {
			return a.Value.GetStringValue()
		}
	}
	return ""
}

func write(file string, spans []span) error {
	text, err := json.MarshalIndent(spans, "", "  ")
	if err != nil {
		return err
	}
	fmt.Println(file)
	return os.WriteFile(file, append(text, '\n'), 0o644) //nolint:gosec // part of the repository
}
