package watch

import (
	"bytes"
	_ "embed" // the template
	"fmt"
	"html/template"
	"os"
	"path/filepath"
	"time"
)

// Page keeps an HTML file up to date that shows a view as a timeline, one bar a machine. The file needs nothing else: no network, no
// script. While the view changes, a browser loads it again every few seconds.
type Page struct {
	File    string
	Title   string        // what is watched
	Refresh time.Duration // after which a browser loads the page again
}

//go:embed page.html.tmpl
var pageText string

var pageTemplate = template.Must(template.New("page").Funcs(template.FuncMap{
	"took": took, "clock": func(t time.Time) string { return t.Format(clock) }, "date": func(t time.Time) string { return t.Format(time.DateTime) },
}).Parse(pageText))

// Update writes the page.
func (p *Page) Update(v View, _ []Change) error { return p.write(v, false) }

// Trouble leaves the page as it is.
func (p *Page) Trouble(View, error) {}

// Tick leaves the page as it is.
func (p *Page) Tick(View) error { return nil }

// End writes the page for the last time. A browser does not load it again.
func (p *Page) End(v View) error { return p.write(v, true) }

// write replaces the file as a whole, so that a browser never sees half of it.
func (p *Page) write(v View, last bool) error {
	var text bytes.Buffer
	if err := p.render(&text, v, last); err != nil {
		return err
	}
	file, err := os.CreateTemp(filepath.Dir(p.File), filepath.Base(p.File)+".*")
	if err != nil {
		return err
	}
	defer os.Remove(file.Name())
	_, err = file.Write(text.Bytes())
	if closed := file.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return err
	}
	if err := os.Chmod(file.Name(), 0o644); err != nil { //nolint:gosec // a report for others
		return err
	}
	return os.Rename(file.Name(), p.File)
}

// pageData is what the template shows.
type pageData struct {
	View
	Title   string
	Summary string
	Ending  string
	Seconds int // until a browser loads the page again; 0: never
	Percent shares
	Legend  []legend
	Ticks   []mark
	Rows    []pageRow
}

// shares are parts of the bar in percent.
type shares struct{ Done, Failed, InProgress float64 }

// legend is an entry of the legend.
type legend struct{ Class, Name string }

// mark is a time on the axis.
type mark struct {
	Left float64 // in percent
	Text string
}

// pageRow is a machine with its bar.
type pageRow struct {
	Name, Doing, Class, Reason string
	For                        time.Duration
	Bars                       []pageBar
}

// pageBar is a part of a bar: a span in one colour.
type pageBar struct {
	Class, Text string
	Left, Width float64 // in percent
}

func (p *Page) render(to *bytes.Buffer, v View, last bool) error {
	d := pageData{View: v, Title: p.Title, Summary: v.summary(), Ending: v.ending()}
	if !last {
		d.Seconds = max(2, int(p.Refresh/time.Second))
	}
	if v.Total > 0 {
		part := func(n int) float64 { return 100 * float64(n) / float64(v.Total) }
		d.Percent = shares{part(v.Done), part(len(v.Failed)), part(len(v.InProgress))}
	}
	axis := axisOf(v)
	d.Ticks = axis.ticks()
	used := map[string]bool{}
	for _, r := range v.Moved {
		row := pageRow{Name: r.Name, Doing: r.Doing, Class: classOf(r.State, r.Status == Failed), Reason: r.Reason, For: r.For}
		for _, s := range r.Spans {
			bar := pageBar{Class: classOf(s.State, s.Failed), Text: fmt.Sprintf("%s: %s, from %s to %s", s.Doing, took(s.length()), s.From.Format(clock), s.To.Format(clock))}
			bar.Left = axis.at(s.From)
			bar.Width = max(0, axis.at(s.To)-bar.Left)
			row.Bars = append(row.Bars, bar)
			used[bar.Class] = true
		}
		d.Rows = append(d.Rows, row)
	}
	for _, l := range legends {
		if used[l.Class] {
			d.Legend = append(d.Legend, l)
		}
	}
	return pageTemplate.Execute(to, d)
}

// legends are the colours of the page, in the order of a machine's life.
var legends = []legend{
	{"rest", "at rest"},
	{"verify", "verifying"},
	{"inspect", "inspecting"},
	{"clean", "cleaning"},
	{"deploy", "deploying"},
	{"check", "ready check"},
	{"active", "active"},
	{"undeploy", "deleting"},
	{"other", "other operations"},
	{"failed", "failed"},
	{"gone", "deleted"},
}

// classOf returns the class of a state, which gives it its colour.
func classOf(state string, failed bool) string {
	if failed {
		return "failed"
	}
	switch state {
	case "enroll", "manageable", "available":
		return "rest"
	case "verifying", "adopting":
		return "verify"
	case "inspecting", "inspect wait":
		return "inspect"
	case "cleaning", "clean wait", "clean hold":
		return "clean"
	case "deploying", "wait call-back", "deploy hold":
		return "deploy"
	case stateChecked:
		return "check"
	case "active":
		return "active"
	case "deleting":
		return "undeploy"
	case stateDeleted:
		return "gone"
	}
	return "other"
}

// axis is the time that the page shows.
type axis struct{ from, to time.Time }

// shortestAxis is the time that a page shows at least.
const shortestAxis = 10 * time.Second

func axisOf(v View) axis {
	a := axis{v.Began, v.Now}
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

// ticks returns round times on the axis.
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
