package watch

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/operator/words"
)

// summaryEvery is the shortest time between two summaries among the lines of changes.
const summaryEvery = time.Minute

// Lines writes a line for each change, and now and then a summary. It is for logs and pipes.
type Lines struct {
	Out, Err io.Writer // changes; problems with Ironic

	begun bool
	last  time.Time // the last summary
	told  string    // its text
}

// Update writes the changes of a sample.
func (l *Lines) Update(v View, changes []Change) error {
	var text strings.Builder
	if !l.begun {
		l.begun = true
		fmt.Fprintf(&text, "%s  %s in the selection: %s\n", v.Now.Format(clock), words.Count(v.Selected, "machine"), v.summary())
		for _, r := range v.Failed {
			fmt.Fprintf(&text, "%s  %s  %s for %s%s\n", v.Now.Format(clock), r.Label(), r.Doing, Took(r.For), because(r.Reason))
		}
		l.last, l.told = v.Now, v.summary()
	}
	for _, c := range changes {
		fmt.Fprintf(&text, "%s  %s\n", c.At.Format(clock), c.line())
	}
	if now := v.summary(); now != l.told && v.Now.Sub(l.last) >= summaryEvery {
		text.WriteString(l.summary(v))
	}
	_, err := io.WriteString(l.Out, text.String())
	return err
}

// line writes a change without its time.
func (c Change) line() string {
	switch {
	case c.From == "":
		return fmt.Sprintf("%s  new, %s%s", c.Name, c.To, because(c.Reason))
	case c.From == c.To:
		return fmt.Sprintf("%s  %s%s", c.Name, c.To, because(c.Reason))
	case c.After == 0:
		return fmt.Sprintf("%s  %s -> %s%s", c.Name, c.From, c.To, because(c.Reason))
	}
	return fmt.Sprintf("%s  %s -> %s after %s%s", c.Name, c.From, c.To, Took(c.After), because(c.Reason))
}

func because(reason string) string {
	if reason == "" {
		return ""
	}
	return ": " + reason
}

func (l *Lines) summary(v View) string {
	l.last, l.told = v.Now, v.summary()
	text := v.Now.Format(clock) + "  " + l.told
	if ending := v.ending(); ending != "" {
		text += "; " + ending
	}
	return text + "\n"
}

// Trouble writes that Ironic has not answered.
func (l *Lines) Trouble(v View, err error) {
	fmt.Fprintf(l.Err, "%s  Ironic does not answer; trying again: %s\n", v.Now.Format(clock), Problem(err))
}

// Tick does nothing: lines show changes only.
func (l *Lines) Tick(View) error { return nil }

// End writes the last summary, if it is new.
func (l *Lines) End(v View) error {
	if v.summary() == l.told {
		return nil
	}
	_, err := io.WriteString(l.Out, l.summary(v))
	return err
}
