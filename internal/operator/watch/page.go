package watch

import (
	"bytes"
	_ "embed" // the template
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

var pageTemplate = PageTemplate(pageText)

// Update writes the page.
func (p *Page) Update(v View, _ []Change) error { return p.write(v, false) }

// Trouble leaves the page as it is.
func (p *Page) Trouble(View, error) {}

// Tick leaves the page as it is.
func (p *Page) Tick(View) error { return nil }

// End writes the page for the last time. A browser does not load it again.
func (p *Page) End(v View) error { return p.write(v, true) }

func (p *Page) write(v View, last bool) error {
	var text bytes.Buffer
	if err := p.render(&text, v, last); err != nil {
		return err
	}
	return WritePage(p.File, text.Bytes())
}

type pageData struct {
	View
	Head    Head
	Title   string
	Summary string
	Ending  string
	Percent shares
	Chart   Chart
}

// shares are parts of the bar in percent.
type shares struct{ Done, Failed, InProgress float64 }

func (p *Page) render(to *bytes.Buffer, v View, last bool) error {
	d := pageData{View: v, Title: p.Title, Summary: v.summary(), Ending: v.ending(), Chart: NewChart(v.Began, v.Now, v.Moved)}
	d.Head.Title = v.done()
	if !last {
		d.Head.Seconds = max(2, int(p.Refresh/time.Second))
	}
	if v.Total > 0 {
		part := func(n int) float64 { return 100 * float64(n) / float64(v.Total) }
		d.Percent = shares{part(v.Done), part(len(v.Failed)), part(len(v.InProgress))}
	}
	return pageTemplate.Execute(to, d)
}
