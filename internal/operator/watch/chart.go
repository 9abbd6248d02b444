package watch

import (
	"cmp"
	_ "embed" // the template
	"fmt"
	"html/template"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/rest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/states"
)

//go:embed chart.html.tmpl
var chartText string

// PageTemplate returns the template of an HTML page that needs nothing else: no network, no script. It may use the templates "head", of a
// Head, and "chart", of a Chart, and the functions took (a duration), clock and date (a time).
func PageTemplate(text string) *template.Template {
	return template.Must(template.Must(template.New("page").Funcs(template.FuncMap{
		"took": Took, "clock": func(t time.Time) string {
			return t.Format(clock)
		}, "date": func(t time.Time) string { return t.Format(time.DateTime) },
	}).Parse(chartText)).Parse(text))
}

// Head is the head of a page.
type Head struct {
	Title   string
	Seconds int // until a browser loads the page again; 0: never
}

// WritePage replaces a file as a whole, so that a browser never sees half of it. It makes all texts of others in the page printable.
func WritePage(name string, text []byte) error {
	file, err := os.CreateTemp(filepath.Dir(name), filepath.Base(name)+".*")
	if err != nil {
		return err
	}
	defer os.Remove(file.Name())
	_, err = io.WriteString(file, rest.Printable(string(text)))
	if closed := file.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return err
	}
	if err := os.Chmod(file.Name(), 0o644); err != nil { //nolint:gosec // a report for others
		return err
	}
	return os.Rename(file.Name(), name)
}

// Chart draws what machines did, one bar a machine.
type Chart struct {
	Legend []legend
	Ticks  []mark
	Rows   []chartRow
}

type legend struct{ Class, Name string }

// mark is a time on the axis.
type mark struct {
	Left float64 // in percent
	Text string
}

// chartRow is a machine with its bar.
type chartRow struct {
	Name, Doing, Class, Reason string
	For                        time.Duration
	Bars                       []chartBar
}

type chartBar struct {
	Class, Text string
	Left, Width float64 // in percent
}

// NewChart returns the chart of machines for a time.
func NewChart(from, to time.Time, rows []Row) Chart {
	axis, used := axisOf(from, to), map[string]bool{}
	chart := Chart{Ticks: axis.ticks()}
	for _, r := range rows {
		row := chartRow{Name: r.Label(), Doing: r.Doing, Class: classOf(r.State, r.Status == Failed), Reason: r.Reason, For: r.For}
		for _, s := range r.Spans {
			bar := chartBar{Class: classOf(s.State, s.Failed), Text: fmt.Sprintf("%s: %s, from %s to %s", s.Doing, Took(s.length()),
				s.From.Format(clock), s.To.Format(clock))}
			bar.Left = axis.at(s.From)
			bar.Width = max(0, axis.at(s.To)-bar.Left)
			row.Bars = append(row.Bars, bar)
			used[bar.Class] = true
		}
		chart.Rows = append(chart.Rows, row)
	}
	chart.Legend = slices.DeleteFunc(slices.Clone(legends), func(l legend) bool { return !used[l.Class] })
	return chart
}

// legends are the colours of the page, in the order of a machine's life.
var legends = []legend{
	{"rest", "at rest"},
	{"verify", "verifying"},
	{"adopt", "adopting"},
	{"inspect", "inspecting"},
	{"clean", "cleaning"},
	{"deploy", "deploying"},
	{"check", "ready check"},
	{"active", "active"},
	{"power", "switching on or off, restarting"},
	{"service", "service"},
	{"rescue", "rescue"},
	{"undeploy", "deleting"},
	{"other", "unknown states"},
	{"failed", "failed"},
	{"gone", "deleted, or reserved by others"},
}

// classes has the class of each provision state, and of what machines look like else. Failed states have that of failures.
var classes = map[string]string{
	"enroll": "rest", "manageable": "rest", "available": "rest",
	"verifying": "verify", "adopting": "adopt",
	"inspecting": "inspect", "inspect wait": "inspect",
	"cleaning": "clean", "clean wait": "clean", "clean hold": "clean",
	"deploying": "deploy", "wait call-back": "deploy", "deploy hold": "deploy", "deploy complete": "deploy", "rebuild": "deploy",
	stateChecked: "check", "active": "active", statePower: "power",
	"servicing": "service", "service wait": "service", "service hold": "service",
	"rescuing": "rescue", "rescue wait": "rescue", "rescue": "rescue", "unrescuing": "rescue",
	"deleting":   "undeploy",
	stateDeleted: "gone", stateLeft: "gone",
}

// classOf returns the class of what a machine looks like, which gives it its colour.
func classOf(looks string, failed bool) string {
	if failed || states.Has(ironic.State(looks), states.Failure) {
		return "failed"
	}
	return cmp.Or(classes[looks], "other")
}

type axis struct{ from, to time.Time }

// shortestAxis is the time that a page shows at least.
const shortestAxis = 10 * time.Second

func axisOf(from, to time.Time) axis {
	a := axis{from, to}
	if a.to.Sub(a.from) < shortestAxis {
		a.to = a.from.Add(shortestAxis)
	}
	return a
}

// at returns the place of a time in percent.
func (a axis) at(t time.Time) float64 {
	part := float64(t.Sub(a.from)) / float64(a.to.Sub(a.from))
	return 100 * min(1, max(0, part))
}

func (a axis) ticks() []mark {
	const most = 7
	steps := []time.Duration{
		5 * time.Second, 10 * time.Second, 30 * time.Second, time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute,
		30 * time.Minute, time.Hour, 2 * time.Hour, 6 * time.Hour, 24 * time.Hour,
	}
	length, step := a.to.Sub(a.from), steps[0]
	for _, step = range steps {
		if length/step <= most {
			break
		}
	}
	for length/step > most {
		step *= 2
	}
	layout := "15:04"
	switch {
	case step < time.Minute:
		layout = clock
	case step >= 6*time.Hour:
		layout = "02 15:04"
	}
	var marks []mark
	for t := a.from.Truncate(step).Add(step); t.Before(a.to); t = t.Add(step) {
		marks = append(marks, mark{a.at(t), t.Format(layout)})
	}
	return marks
}
