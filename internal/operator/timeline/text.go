package timeline

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/rest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/notes"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/reason"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/operator/watch"
)

// Text writes a life as lines, with the times in UTC.
func (l *Life) Text(to io.Writer) error {
	var text strings.Builder
	fmt.Fprintf(&text, "%s\n", rest.OneLine(l.Subject))
	for _, now := range l.Now {
		fmt.Fprintf(&text, "%s\n", rest.OneLine(now))
	}
	fmt.Fprintf(&text, "Times are by the clock of Ironic, in UTC. As of %s.\n\n", l.AsOf.UTC().Format(time.DateTime))
	if l.isNoted() {
		text.WriteString(notes.Hearsay + "\n\n")
	}
	l.table(&text)
	for i, missing := range l.Missing {
		if i == 0 && len(l.Moments) > 0 {
			text.WriteString("\n")
		}
		fmt.Fprintf(&text, "%s\n", rest.OneLine(missing))
	}
	_, err := io.WriteString(to, text.String())
	return err
}

// isNoted reports whether a moment is known from a note.
func (l *Life) isNoted() bool {
	return slices.ContainsFunc(l.Moments, func(m Moment) bool { return slices.Contains(m.Sources, FromNote) })
}

func (l *Life) table(text *strings.Builder) {
	if len(l.Moments) == 0 {
		return
	}
	rows := [][]string{{"TIME", "TOOK", "NODE", "WHAT (WHO; KNOWN FROM)"}}
	for i := range l.Moments {
		row := l.Moments[i].row()
		who := strings.TrimPrefix(row[4]+"; "+row[5], "; ")
		rows = append(rows, append(row[:3], strings.TrimSuffix(row[3]+" ("+who+")", " ()")))
	}
	width := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			width[i] = max(width[i], len([]rune(cell)))
		}
	}
	for i, row := range rows {
		line := ""
		for column, cell := range row {
			if column == 2 && !l.several {
				continue
			}
			line += cell + strings.Repeat(" ", width[column]-len([]rune(cell))+2)
		}
		fmt.Fprintln(text, strings.TrimRight(line, " "))
		if i > 0 {
			for _, told := range l.Moments[i-1].told() {
				fmt.Fprintf(text, "%s%s\n", strings.Repeat(" ", width[0]+width[1]+4), told)
			}
		}
	}
}

// told returns what is known of why something failed, in lines: the reason, and Ironic's words.
func (m *Moment) told() (lines []string) {
	if m.Reason != "" {
		lines = append(lines, reason.Line(m.Reason))
	}
	if m.Words != "" {
		lines = append(lines, rest.OneLine(m.Words))
	}
	return lines
}

func (m *Moment) row() []string {
	var from []string
	for _, source := range m.Sources {
		from = append(from, string(source))
	}
	at := m.At.UTC().Format(time.DateTime)
	if m.Unknown {
		at = ""
	}
	return []string{at, m.took(), rest.OneLine(m.Node), rest.OneLine(m.What), rest.OneLine(m.Who), strings.Join(from, ", ")}
}

// took writes how long the moment lasted; "" if it took no time, or if that is not known.
func (m *Moment) took() string {
	switch {
	case m.Until.IsZero():
		return ""
	case m.Bound == atLeast:
		return string(atLeast) + " " + watch.Took(m.length())
	case m.Bound == soFar:
		return watch.Took(m.length()) + " " + string(soFar)
	}
	return watch.Took(m.length())
}

// JSON writes a life as a JSON document, with the times in UTC.
func (l *Life) JSON(to io.Writer) error {
	out := *l
	out.AsOf, out.Moments = l.AsOf.UTC(), slices.Clone(l.Moments)
	for i := range out.Moments {
		m := &out.Moments[i]
		m.At, m.Until = m.At.UTC(), m.Until.UTC()
	}
	return rest.WriteJSON(to, out)
}
