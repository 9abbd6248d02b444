package show

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/deploy"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/notes"
)

// Note is a note of this provider on a node or an allocation, in words. All times are in UTC, by the clock of the site.
type Note struct {
	At         time.Time `json:"at,omitzero"`    // zero: the note does not tell
	Until      time.Time `json:"until,omitzero"` // when it ended; zero: it took no time, has not ended, or the note does not tell
	Text       string    `json:"text"`
	By         string    `json:"by,omitempty"` // a run, a user, or a metal_discovery_import
	InProgress bool      `json:"in_progress,omitempty"`
	Failed     bool      `json:"failed,omitempty"`
}

// String writes the note on a line.
func (n Note) String() string {
	text := n.Text
	if !n.At.IsZero() {
		text = n.At.Format(time.RFC3339) + " " + text
	}
	if n.By != "" {
		text += ", " + n.By
	}
	if !n.Until.IsZero() {
		text += ", until " + n.Until.Format(time.RFC3339)
	}
	return text
}

// Notes returns the notes of this provider on a node at a time, the oldest first. Those without a time come first.
func Notes(n *ironic.Node, now time.Time) []Note {
	all := []Note{}
	if d := notes.DiscoveryOf(n); d != nil {
		at, _ := time.Parse(time.RFC3339, d.At)
		all = append(all, Note{At: at, Text: "discovered, and named " + d.Name + " after " + d.From, By: "metal_discovery_import " + d.Owner})
	}
	all = append(all, CreationNotes(n.Extra, notes.MarkCreation, "creation of the host")...)
	all = append(all, CreationNotes(n.Extra, notes.MarkReservation, "reservation of the machine")...)
	if spec := notes.SuspendedAllocation(n); spec != nil {
		all = append(all, Note{Text: fmt.Sprintf("an undeployment is to create allocation %s (%s) again", spec.Name, spec.UUID)})
	}
	if q := notes.QuarantineOf(n); q != nil {
		note := Note{At: q.Since, Text: "quarantine: the deployment for allocation " + q.Allocation + " failed", Failed: true}
		if q.IsMove() {
			note = Note{At: q.Since, Text: fmt.Sprintf("quarantine: member %s of group %s left the machine", q.Allocation, q.Group)}
		}
		all = append(all, note)
	}
	if turn := notes.TurnOf(n); turn != nil {
		all = append(all, ofTurn(turn)...)
	}
	if e := notes.ErasureOf(n); e != nil {
		all = append(all, ofWork(e, "automated cleaning"))
	}
	if w := notes.WorkOf(n, notes.KeyService); w != nil {
		all = append(all, ofWork(w, "service"))
	}
	if o := notes.OperationOf(n); o != nil {
		note := Note{At: o.Since, Text: "metal " + o.Command + " began", By: o.By}
		switch {
		case notes.UnfinishedOperation(n, now) == nil:
		case !o.Failed.IsZero():
			note.Text += ", and failed at " + o.Failed.UTC().Format(time.RFC3339) + ": " + o.Left()
		default:
			note.Text += ", and its end is not noted: " + o.Left()
		}
		all = append(all, note)
	}
	if c := notes.CheckOf(n, now); c != nil {
		all = append(all, Note{At: c.Since, Text: "ready check of " + c.Target, InProgress: true})
	}
	if c := notes.NotReadyOf(n); c != nil {
		all = append(all, Note{At: c.Since, Until: c.Failed, Text: "ready check of " + c.Target + " that failed", Failed: true})
	}
	if boot := deploy.BootNoteOf(n); boot != nil {
		all = append(all, ofBoot(boot)...)
	}
	for i := range all {
		all[i].At, all[i].Until = all[i].At.UTC(), all[i].Until.UTC()
	}
	slices.SortStableFunc(all, func(a, b Note) int { return a.At.Compare(b.At) })
	return all
}

// CreationNotes returns what a mark in extra tells of a creation by a run; nothing if there is none.
func CreationNotes(extra map[string]any, key notes.Mark, what string) []Note {
	mark := notes.CreationOf(extra, key)
	if mark == nil {
		return nil
	}
	if mark.Done.IsZero() {
		what += "; its end is not noted"
	}
	return []Note{{At: mark.Since, Until: mark.Done, Text: what, By: "run " + mark.Run}}
}

// ofTurn tells of a turn in a rollout group.
func ofTurn(t *notes.Turn) (all []Note) {
	turn := Note{At: t.Since, Text: "turn of rollout group " + t.Group, By: "run " + t.Run, Failed: t.Failed}
	if t.Canary {
		turn.Text = "canary of rollout group " + t.Group
	}
	if t.Failed {
		turn.Text += ": the change failed, or the machine is not ready"
	}
	if !t.Since.IsZero() {
		all = append(all, turn)
	}
	if !t.Until.IsZero() {
		all = append(all, Note{At: t.Until, Text: "end of the pause of rollout group " + t.Group, By: "run " + t.Run})
	}
	return all
}

// ofWork tells of a cleaning or a service.
func ofWork(w *notes.Work, what string) Note {
	note := Note{At: w.Began, Until: w.Ended, Text: what, By: "watched by run " + w.Run, Failed: w.Failed}
	if len(w.Steps) > 0 {
		note.Text += " (" + strings.Join(w.Steps, ", ") + ")"
	}
	if w.Failed {
		note.Text += " that failed"
	}
	return note
}

// ofBoot tells of a live ISO.
func ofBoot(b *deploy.BootNote) (all []Note) {
	if !b.At.IsZero() {
		all = append(all, Note{At: b.At, Text: fmt.Sprintf("boot of a live ISO (boot %d of this image)", max(1, b.Boots))})
	}
	if b.Again != nil {
		all = append(all, Note{Text: "the machine is undeployed, to be deployed again with a live ISO"})
	}
	return all
}
