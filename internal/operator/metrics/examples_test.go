package metrics_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/operator/metrics"
)

const examples = "../../../examples/observability"

// read returns a file of the examples.
func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(examples, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// query is an expression of PromQL, with the labels that its legend shows.
type query struct{ expr, legend string }

// alerts returns the expressions of the alerts.
func alerts(t *testing.T) (all []query) {
	t.Helper()
	for _, found := range regexp.MustCompile(`(?m)^ +expr: (.*)$`).FindAllStringSubmatch(read(t, "alerts.yml"), -1) {
		all = append(all, query{expr: found[1]})
	}
	return all
}

// dashboard returns the expressions of the dashboard.
func dashboard(t *testing.T) (all []query) {
	t.Helper()
	var board struct {
		Panels []struct {
			Targets []struct{ Expr, LegendFormat string }
		}
	}
	if err := json.Unmarshal([]byte(read(t, "dashboard.json")), &board); err != nil {
		t.Fatal(err)
	}
	for _, p := range board.Panels {
		for _, target := range p.Targets {
			all = append(all, query{target.Expr, target.LegendFormat})
		}
	}
	return all
}

var (
	selector  = regexp.MustCompile(`\b(metal_\w+|up)\b(?:\{([^}]*)\})?`)
	grouping  = regexp.MustCompile(`\b(?:by|on|ignoring|without|group_left|group_right) ?\(([^)]*)\)`)
	matcher   = regexp.MustCompile(`(\w+) ?[=!]~?`)
	inLegend  = regexp.MustCompile(`\{\{ ?(\w+) ?\}\}`)
	fromOther = []string{"job", "instance", "le"} // labels that Prometheus adds
)

// wrong returns what an expression names that the collector does not export, and the metrics that it uses.
func (q query) wrong() (wrong, used []string) {
	known := map[string][]string{"up": fromOther} // which Prometheus itself knows of each scrape
	for _, f := range metrics.Families() {
		known[f.Name] = f.Labels
		if f.Kind == "histogram" {
			known[f.Name+"_bucket"], known[f.Name+"_count"], known[f.Name+"_sum"] = f.Labels, f.Labels, f.Labels
		}
	}
	labels := slices.Clone(fromOther)
	for _, found := range selector.FindAllStringSubmatch(q.expr, -1) {
		of, exists := known[found[1]]
		if !exists {
			wrong = append(wrong, found[1])
		}
		used, labels = append(used, found[1]), append(labels, of...)
		for _, label := range matcher.FindAllStringSubmatch(found[2], -1) {
			if !slices.Contains(slices.Concat(of, fromOther), label[1]) {
				wrong = append(wrong, found[1]+"{"+label[1]+"}")
			}
		}
	}
	var named []string
	for _, group := range grouping.FindAllStringSubmatch(q.expr, -1) {
		named = append(named, strings.Split(group[1], ",")...)
	}
	for _, label := range inLegend.FindAllStringSubmatch(q.legend, -1) {
		named = append(named, label[1])
	}
	for _, label := range named {
		if label = strings.TrimSpace(label); !slices.Contains(labels, label) {
			wrong = append(wrong, label)
		}
	}
	return wrong, used
}

func TestExamples_nameOnlyWhatIsExported(t *testing.T) {
	t.Parallel()
	shown := ""
	for name, queries := range map[string][]query{"alerts.yml": alerts(t), "dashboard.json": dashboard(t)} {
		if len(queries) < 10 {
			t.Errorf("%s has %d expressions", name, len(queries))
		}
		for _, q := range queries {
			wrong, used := q.wrong()
			if len(wrong) > 0 || len(used) == 0 {
				t.Errorf("%s: %s (%s) names %q, which the collector does not export", name, q.expr, q.legend, wrong)
			}
			if name == "dashboard.json" {
				shown += strings.Join(used, " ") + " "
			}
		}
	}
	for _, f := range metrics.Families() {
		if !strings.Contains(shown, f.Name) {
			t.Errorf("no panel of the dashboard shows %s", f.Name)
		}
	}
	for expr, want := range map[string]string{
		`metal_machine > 0`:                          "metal_machine",
		`metal_machines{status="active"}`:            "metal_machines{status}",
		`sum by (job, class) (metal_machines) > 0`:   "class",
		`metal_slots_used / on (scope, x) metal_up`:  "x",
		`rate(metal_operation_duration_seconds[5m])`: "",
	} {
		if wrong, _ := (query{expr: expr}).wrong(); strings.Join(wrong, " ") != want {
			t.Errorf("%s: %q is wrong, want %q", expr, wrong, want)
		}
	}
}

func TestExamples_eachAlertIsTested(t *testing.T) {
	t.Parallel()
	tests := read(t, "alerts_test.yml")
	for _, alert := range regexp.MustCompile(`alert: (\w+)`).FindAllStringSubmatch(read(t, "alerts.yml"), -1) {
		if !regexp.MustCompile(`alertname: ` + alert[1] + `\n +exp_alerts`).MatchString(tests) {
			t.Errorf("no test lets %s fire", alert[1])
		}
	}
}

// The guide has a table of all metrics.
func TestGuide_tellsAllMetrics(t *testing.T) {
	t.Parallel()
	guide, err := os.ReadFile("../../../templates/guides/observe.md")
	if err != nil {
		t.Fatal(err)
	}
	var table strings.Builder
	for _, f := range metrics.Families() {
		var labels []string
		for _, label := range f.Labels {
			labels = append(labels, "`"+label+"`")
		}
		fmt.Fprintf(&table, "| `%s` | %s | %s | %s |\n", f.Name, f.Kind, strings.Join(labels, ", "), strings.TrimSuffix(f.Help, "."))
	}
	if !strings.Contains(string(guide), table.String()) {
		t.Errorf("the table of the guide must be\n%s", table.String())
	}
}

// Prometheus itself checks what is exported, and the examples. tools/prometheus gets it.
func TestPrometheus_checks(t *testing.T) {
	t.Parallel()
	programs := os.Getenv("METAL_PROMETHEUS")
	if programs == "" {
		t.Skip("make test-prometheus runs this test")
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(told(t, 20, life(time.Now())...))
	exported := httptest.NewRecorder()
	promhttp.HandlerFor(registry, promhttp.HandlerOpts{}).ServeHTTP(exported, httptest.NewRequestWithContext(t.Context(), http.MethodGet,
		"/metrics", nil))
	text := exported.Body.String()
	for _, args := range [][]string{
		{"check", "metrics"},
		{"check", "rules", "alerts.yml"},
		{"test", "rules", "alerts_test.yml"},
		{"check", "config", "prometheus.yml"},
	} {
		cmd := exec.CommandContext(t.Context(), filepath.Join(programs, "promtool"), args...)
		cmd.Dir, cmd.Stdin = examples, strings.NewReader(text)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
	if !strings.Contains(text, "metal_operation_duration_seconds_bucket") {
		t.Errorf("exported\n%s", text)
	}
}
