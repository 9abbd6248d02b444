package timeline

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/notes"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/ramdisk"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/reason"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/states"
)

func ofAllocation(a *ironic.Allocation, at time.Time) (all []Moment, now []string) {
	what := "allocation " + cmp.Or(a.Name, a.UUID) + " created"
	first := notes.FirstCreated(a.Extra)
	if !first.IsZero() {
		all = append(all, Moment{At: first, What: what, Sources: []Source{FromNote}})
		what += " again, because an undeployment had deleted it"
	}
	if a.Owner != "" {
		what += ", owner " + a.Owner
	}
	if created, err := time.Parse(time.RFC3339, a.CreatedAt); err == nil {
		all = append(all, Moment{At: created, What: what, Sources: []Source{FromAllocation}})
	}
	for _, note := range notes.OfAllocation(a, at).Told {
		all = append(all, ofNote(note, time.Time{}))
	}
	text := "The allocation is " + string(a.State)
	if a.LastError != "" {
		text += ": " + api.FirstLine(a.LastError)
	}
	return all, append(now, strings.TrimSuffix(text, ".")+".")
}

func ofNote(n notes.Note, now time.Time) Moment {
	m := Moment{At: n.At, Until: n.Until, What: n.Text, Who: n.By, Failed: n.Failed, Sources: []Source{FromNote}}
	if n.InProgress {
		m.Until, m.Bound = now, soFar
	}
	return m
}

// ofNotes returns what the notes of this provider on a node tell. Those without a time hold now.
func ofNotes(n *ironic.Node, now time.Time) (all []Moment, present []string) {
	for _, note := range notes.Told(n, now) {
		if note.At.IsZero() {
			present = append(present, upper(note.Text)+".")
			continue
		}
		all = append(all, ofNote(note, now))
	}
	return all, present
}

// fromNode returns what the fields of a node and the notes on it tell, except for the provision state.
func fromNode(n *ironic.Node, now time.Time) (all []Moment, present []string) {
	if !n.CreatedAt.IsZero() {
		all = append(all, Moment{At: n.CreatedAt, What: "node created", Sources: []Source{FromNode}})
	}
	all = append(all, ofInspection(n)...)
	for _, field := range []struct{ key, what string }{
		{machine.KeyPowerChanged, "last change of the power: " + n.PowerState}, {ramdisk.KeyHeartbeat, "last report of the ramdisk"},
	} {
		if at := ironic.InternalTime(n, field.key); !at.IsZero() {
			all = append(all, Moment{At: at, What: field.what, Sources: []Source{FromNode}})
		}
	}
	told, present := ofNotes(n, now)
	return append(all, told...), append(ofPresent(n), present...)
}

// lastChange returns the last change of a node's record, unless it is one of the other moments.
func lastChange(n *ironic.Node, others []Moment) []Moment {
	at := n.UpdatedAt
	if at.IsZero() || slices.ContainsFunc(others, func(m Moment) bool { return near(m.At, at) || near(m.Until, at) }) {
		return nil
	}
	return []Moment{{At: at, What: "last change of the node's record", Sources: []Source{FromNode}}}
}

// ofInspection returns the last inspection. Ironic has its beginning only until it succeeds (reference/ironic.md#history-of-a-node).
func ofInspection(n *ironic.Node) []Moment {
	began, ended := n.InspectionStartedAt, n.InspectionFinishedAt
	switch {
	case began != nil && ended != nil && !ended.Before(*began):
		return []Moment{{At: *began, Until: *ended, What: "inspection", Sources: []Source{FromNode}}}
	case began != nil:
		return []Moment{{At: *began, What: "inspection began", Sources: []Source{FromNode}}}
	case ended != nil:
		return []Moment{{At: *ended, What: "inspection ended", Sources: []Source{FromNode}}}
	}
	return nil
}

// ofPresent says what holds now and has no time.
func ofPresent(n *ironic.Node) (now []string) {
	say := func(format string, args ...any) { now = append(now, fmt.Sprintf(format, args...)) }
	say("%s.", upper(states.StatusOf(n)))
	if n.Owner != "" {
		say("Its owner is %s.", n.Owner)
	}
	if n.InstanceUUID != "" {
		say("It is reserved for %s.", n.InstanceUUID)
	}
	if n.Reservation != "" {
		say("The conductor %s has locked it.", n.Reservation)
	}
	if n.Maintenance && n.MaintenanceReason != "" {
		say("Reason of the maintenance: %s.", strings.TrimSuffix(api.FirstLine(n.MaintenanceReason), "."))
	}
	if n.Fault != "" {
		say("Ironic notes the fault %s.", n.Fault)
	}
	if failures := notes.Failures(n); failures > 0 {
		say("Failed operations since the last success: %d.", failures)
	}
	return now
}

func upper(text string) string { return strings.ToUpper(text[:1]) + text[1:] }

// flows name what the history records, by the beginning of its event types.
var flows = map[string]string{
	"automated_cleaning": "automated cleaning", "manual_cleaning": "manual cleaning", "deployment": "deployment", "servicing": "service",
	"cleaning": "cleaning", "deploying": "deployment",
	"introspection": "inspection", "verifying": "verification", "verify": "verification", "rescue": "rescue", "adoption": "adoption",
	"unprovision": "undeployment",
	"console":     "console", "monitoring": "health", "takeover": "takeover by a conductor",
}

// fails are the flows that a failure of a type ends.
var fails = map[string][]string{
	"deploying": {"deployment"}, "cleaning": {"automated_cleaning", "manual_cleaning"},
	"servicing": {"servicing"},
}

func endFlows(moments []Moment, begun map[string]int, failure Moment, kind string) {
	for _, flow := range fails[kind] {
		if start, known := begun[flow]; known {
			moments[start].Until, moments[start].What, moments[start].Failed = failure.At, flows[flow]+" that failed", true
			delete(begun, flow)
		}
	}
}

// mergeHistory adds the entries of a history. A failure that ends a stay in a failed state is told with it, and the end of a flow with its
// start.
func mergeHistory(moments []Moment, history []ironic.Event) []Moment {
	begun := map[string]int{} // positions of the starts, by flow
	for i := range history {
		e := &history[i]
		m := Moment{At: e.CreatedAt, Words: api.FirstLine(e.Event), Failed: e.IsError(), Sources: []Source{FromHistory}, Who: whoOf(e)}
		flow, starts := strings.CutSuffix(e.Type, "_start")
		flow, ends := strings.CutSuffix(flow, "_end")
		m.What = flows[flow]
		m.What = cmp.Or(m.What, flow)
		if e.IsError() {
			if why := reason.Of(e.Event); why != nil {
				m.Reason = why.ID
			}
			m.What += " failed"
			endFlows(moments, begun, m, e.Type)
		}
		if same := failureAt(moments, m); same >= 0 {
			told := &moments[same]
			told.Reason, told.Words, told.Sources = cmp.Or(m.Reason, told.Reason), m.Words, append(slices.Clone(told.Sources), FromHistory)
			told.Who = cmp.Or(told.Who, m.Who)
			continue
		}
		start, known := begun[flow]
		switch {
		case starts:
			begun[flow] = len(moments)
			m.What += " began"
		case ends && known && !e.IsError():
			moments[start].Until, moments[start].What = e.CreatedAt, m.What
			delete(begun, flow)
			continue
		case ends && !e.IsError():
			m.What += " ended"
		}
		moments = append(moments, m)
	}
	return moments
}

// failureAt returns which moment is the failure that an entry of the history is about, the nearest of several; -1 if none is.
func failureAt(moments []Moment, entry Moment) int {
	nearest := -1
	for i, m := range moments {
		sameWords := m.Words == "" || m.Words == entry.Words
		if !entry.Failed || !m.Failed || m.State == "" || !near(m.At, entry.At) || !sameWords || slices.Contains(m.Sources, FromHistory) {
			continue
		}
		if nearest < 0 || m.At.Sub(entry.At).Abs() < moments[nearest].At.Sub(entry.At).Abs() {
			nearest = i
		}
	}
	return nearest
}

func whoOf(e *ironic.Event) string {
	switch {
	case e.User != "":
		return "user " + e.User
	case e.Conductor != "":
		return "conductor " + e.Conductor
	}
	return ""
}

// withLastError adds the last error of a node to what holds now, unless a moment tells it. Ironic keeps no time of it.
func withLastError(n *ironic.Node, moments []Moment, now []string) []string {
	words := api.FirstLine(n.LastError)
	if words == "" || slices.ContainsFunc(moments, func(m Moment) bool { return m.Words == words }) {
		return now
	}
	return append(now, "Ironic's last error, of which it tells no time: "+strings.TrimSuffix(words, ".")+".")
}
