package timeline

import (
	"bytes"
	"cmp"
	_ "embed" // the template
	"slices"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/notes"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/operator/watch"
)

//go:embed page.html.tmpl
var pageText string

var pageTemplate = watch.PageTemplate(pageText)

type pageData struct {
	Life    *Life
	Head    watch.Head
	AsOf    time.Time
	Chart   watch.Chart
	Nodes   bool
	Rows    []pageRow
	Hearsay string
}

type pageRow struct {
	Cells []string
	Told  []string
}

// WritePage writes a life as an HTML file that needs nothing else, with the times in UTC.
func (l *Life) WritePage(file string) error {
	now := l.AsOf.UTC()
	d := pageData{Life: l, Head: watch.Head{Title: l.Subject}, AsOf: now, Nodes: l.several}
	rows := l.chartRows()
	if len(rows) > 0 {
		began := now
		for _, r := range rows {
			if from := r.Spans[0].From; from.Before(began) {
				began = from
			}
		}
		d.Chart = watch.NewChart(began, now, rows)
	}
	for i := range l.Moments {
		cells := l.Moments[i].row()
		if !d.Nodes {
			cells = slices.Delete(cells, 2, 3)
		}
		d.Rows = append(d.Rows, pageRow{cells, l.Moments[i].told()})
	}
	if l.isNoted() {
		d.Hearsay = notes.Hearsay
	}
	var text bytes.Buffer
	if err := pageTemplate.Execute(&text, d); err != nil {
		return err
	}
	return watch.WritePage(file, text.Bytes())
}

func (l *Life) chartRows() []watch.Row {
	var rows []watch.Row
	for i := range l.stays {
		s := &l.stays[i]
		at := slices.IndexFunc(rows, func(r watch.Row) bool { return r.Name == s.node })
		if at < 0 {
			at, rows = len(rows), append(rows, watch.Row{Name: s.node})
		}
		row, doing, looks := &rows[at], cmp.Or(s.doing, s.state), cmp.Or(s.looks, s.state)
		row.Doing, row.State, row.For, row.Reason = doing, looks, s.until.Sub(s.from), s.words
		row.Spans = append(row.Spans, watch.Span{Doing: doing, State: looks, From: s.from.UTC(), To: s.until.UTC(), Failed: s.failed})
	}
	return rows
}
