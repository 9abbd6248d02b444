package watch

import (
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/operator/words"
)

// Screen redraws a view on a terminal. While it runs, it uses the terminal's second page; at the end the last view stays on the first.
type Screen struct {
	Out    io.Writer
	Size   func() (width, height int) // of the terminal now
	Colour bool
	Title  string // what is watched

	begun   bool
	trouble string
}

// Control sequences of terminals.
const (
	otherPage  = "\x1b[?1049h\x1b[?25l" // and hides the cursor
	firstPage  = "\x1b[?1049l\x1b[?25h"
	home       = "\x1b[H"
	endLine    = "\x1b[K\r\n" // clears the rest of the line
	clearBelow = "\x1b[J"
)

// colour is the control sequence of a colour.
type colour string

const (
	normal colour = ""
	bold   colour = "\x1b[1m"
	dim    colour = "\x1b[2m"
	red    colour = "\x1b[31m"
	green  colour = "\x1b[32m"
	yellow colour = "\x1b[33m"
	reset         = "\x1b[0m"
)

type piece struct {
	text   string
	colour colour
}

// Update draws the view.
func (s *Screen) Update(v View, _ []Change) error {
	s.trouble = ""
	return s.Tick(v)
}

// oldAfter is how old the last sample may be before the screen says so. An Ironic that hangs is an error only after minutes.
const oldAfter = 30 * time.Second

// Trouble shows the error until the next sample.
func (s *Screen) Trouble(v View, err error) {
	s.trouble = fmt.Sprintf("%s Ironic does not answer; trying again: %s", v.Now.Format(clock), Problem(err))
	_ = s.Tick(v) // the next tick reports the error
}

// Tick draws the view with the time that has passed.
func (s *Screen) Tick(v View) error {
	width, height := s.Size()
	var text strings.Builder
	if !s.begun {
		s.begun = true
		text.WriteString(otherPage)
	}
	text.WriteString(home)
	lines := s.frame(v, width, height-1)
	for i, line := range lines {
		text.WriteString(s.draw(line, width))
		if i < len(lines)-1 {
			text.WriteString(endLine)
		}
	}
	text.WriteString("\x1b[K" + clearBelow)
	_, err := io.WriteString(s.Out, text.String())
	return err
}

// End leaves the second page and writes the last view on the first.
func (s *Screen) End(v View) error {
	width, height := s.Size()
	var text strings.Builder
	text.WriteString(firstPage)
	for _, line := range s.frame(v, width, height-1) {
		text.WriteString(s.draw(line, width) + "\n")
	}
	_, err := io.WriteString(s.Out, text.String())
	return err
}

// draw writes a line that is not wider than the terminal.
func (s *Screen) draw(line []piece, width int) string {
	var text strings.Builder
	for _, p := range line {
		shown := words.Fit(p.text, width)
		width -= utf8.RuneCountInString(shown)
		if s.Colour && p.colour != normal && shown != "" {
			shown = string(p.colour) + shown + reset
		}
		text.WriteString(shown)
	}
	return text.String()
}

// frame returns the lines of a view, at most as many as given.
func (s *Screen) frame(v View, width, height int) [][]piece {
	lines := [][]piece{heading(s.Title, v.Now, width), bar(v, width), {{v.summary(), normal}}}
	switch last := v.Sample.Taken; {
	case s.trouble != "":
		lines = append(lines, []piece{{s.trouble, red}})
	case !last.IsZero() && v.Now.Sub(last) >= oldAfter:
		lines = append(lines, []piece{{"Ironic's last answer is from " + last.Format(clock), red}})
	}
	room := max(0, height-len(lines))
	failed := table("FAILED", v.Failed, red, min(room, max(4, room/3)))
	progress := table("IN PROGRESS", v.InProgress, yellow, room-len(failed))
	lines = append(append(lines, progress...), failed...)
	if left := height - len(lines); left > 3 {
		lines = append(lines, table("DONE LAST", v.Recent, green, min(left, 2+shownRecent))...)
	}
	return lines[:min(len(lines), max(1, height))]
}

// shownRecent is how many machines that are done a frame shows at most, with the line that counts the others.
const shownRecent = 6

// heading is the first line: what is watched, and the time.
func heading(title string, now time.Time, width int) []piece {
	at := now.Format(clock)
	title = words.Fit(title, width-len(at)-1)
	gap := max(1, width-utf8.RuneCountInString(title)-len(at))
	return []piece{{title, bold}, {strings.Repeat(" ", gap) + at, dim}}
}

// bar is the line with the bar and the estimate.
func bar(v View, width int) []piece {
	const widest, narrowest = 60, 10
	percent := 0
	if v.Total > 0 {
		percent = 100 * v.Done / v.Total
	}
	after := fmt.Sprintf(" %d %%", percent)
	if v.idle() {
		after = ""
	}
	if ending := v.ending(); ending != "" {
		after += "   " + ending
	}
	cells := min(widest, max(narrowest, width-utf8.RuneCountInString(after)-2))
	part := func(n int) int {
		if v.Total == 0 {
			return 0
		}
		return cells * n / v.Total
	}
	done, failed := part(v.Done), part(len(v.Failed))
	moving := part(v.Done+len(v.Failed)+len(v.InProgress)) - done - failed
	rest := cells - done - failed - moving
	return []piece{
		{"[", normal},
		{strings.Repeat("#", done), green},
		{strings.Repeat("!", failed), red},
		{strings.Repeat("=", moving), yellow},
		{strings.Repeat("-", rest), dim},
		{"]" + after, normal},
	}
}

// table is a heading and a line for each row, at most as many lines as given, with an empty line before. If it has no room for all
// rows, the last line counts the others.
func table(title string, rows []Row, c colour, most int) [][]piece {
	if len(rows) == 0 || most < 3 {
		return nil
	}
	lines := [][]piece{nil, {{fmt.Sprintf("%s (%d)", title, len(rows)), c}}}
	shown := rows
	if len(shown) > most-len(lines) {
		shown = rows[:most-len(lines)-1]
	}
	name, doing := 0, 0
	for _, r := range shown {
		name = max(name, utf8.RuneCountInString(r.Label()))
		doing = max(doing, utf8.RuneCountInString(r.Doing))
	}
	name = min(name, widestName)
	for _, r := range shown {
		line := []piece{
			{"  " + pad(r.fitting(name), name) + "  ", normal},
			{pad(r.Doing, doing), c},
			{fmt.Sprintf("  %6s", Took(r.For)), normal},
		}
		if r.Reason != "" {
			line = append(line, piece{"  " + r.Reason, normal})
		}
		lines = append(lines, line)
	}
	if more := len(rows) - len(shown); more > 0 {
		lines = append(lines, []piece{{fmt.Sprintf("  and %d more", more), dim}})
	}
	return lines
}

// widestName is the width from which names of machines are cut, the names of allocations last.
const (
	widestName   = 36
	shortestName = 9 // of a node beside the name of its allocation
)

// fitting is the label in a number of columns. The name of the node is cut first: it may be a UUID, and people look for the allocation.
func (r Row) fitting(width int) string {
	more := utf8.RuneCountInString(r.Label()) - width
	if more <= 0 || r.Label() == r.Name {
		return r.Label()
	}
	return labelled(words.Fit(r.Name, max(shortestName, utf8.RuneCountInString(r.Name)-more)), r.Allocation)
}

func pad(s string, width int) string { return fmt.Sprintf("%-*s", width, words.Fit(s, width)) }
