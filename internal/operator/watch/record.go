package watch

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/operator/words"
)

// Entry is a line of a record: what a watch saw, as a JSON object. Either it is about the watch itself, and has only At, Watch and Site, or
// it is about a machine, and Watch is empty. All times are by the clock of the site.
//
// A watch that begins writes a line with Watch "began", and one for each machine of its selection, with Since and without From. Then it
// writes one line for each change. If Ironic does not answer, it writes "lost", and "again" with the next list; what happened in between
// may be missing. It ends with "ended". Without that line it was killed, and knew nothing after its last line. Several watches can append
// to a file one after the other.
type Entry struct {
	At    time.Time `json:"at"`              // when the machine entered the state, by Ironic; otherwise when the watch saw it
	Watch Event     `json:"watch,omitempty"` // what happened to the watch
	Site  string    `json:"site,omitempty"`  // of "began": Ironic and the selection

	Node string `json:"node,omitempty"` // UUID
	Name string `json:"name,omitempty"`
	// provision state; "deleted" if Ironic has no such node any more, "reserved by others" if it has left the allocations that are watched
	State string `json:"state,omitempty"`
	// the state with a power change, a ready check or a turn of a rollout, for people; "": as State
	Doing string `json:"doing,omitempty"`
	// what gives the machine its colour on a page, "power change" or "ready check"; "": State does
	Looks string    `json:"looks,omitempty"`
	Since time.Time `json:"since,omitzero"` // of the first line of a watch: when the machine entered the state, by Ironic
	// the provision state before, which may be the same; "": the watch has just begun, or the node is new
	From       string  `json:"from,omitempty"`
	Seconds    float64 `json:"seconds,omitempty"`    // how long the machine did what it did before, if an operation was in progress
	Instance   string  `json:"instance,omitempty"`   // instance_uuid: the UUID of its allocation
	Allocation string  `json:"allocation,omitempty"` // the name of the allocation, if the user of the watch may see it
	Failed     bool    `json:"failed,omitempty"`     // the last operation has failed
	Reason     string  `json:"reason,omitempty"`     // of the failure, of the table of reasons; "": none has Ironic's words
	Words      string  `json:"words,omitempty"`      // Ironic's about the failure, in one line
}

// Event is what happened to a watch.
type Event string

// The events of a watch.
const (
	EventBegan Event = "began"
	EventLost  Event = "lost"
	EventAgain Event = "again"
	EventEnded Event = "ended"
)

// Recorder appends what a model sees to a file. It writes the lines of a list at once: after a kill, at most the last line is torn.
type Recorder struct {
	File  string
	Title string // what is watched
	Model *Model

	out  *os.File
	lost bool
	err  error // of a line that Trouble could not write
}

// Update writes the changes of a sample.
func (r *Recorder) Update(v View, changes []Change) error {
	var lines []Entry
	if r.out == nil {
		if err := r.open(); err != nil {
			return err
		}
		lines = append(lines, Entry{At: v.Now, Watch: EventBegan, Site: r.Title})
		for _, m := range r.Model.machines() {
			line := entryOf(v.Now, m)
			line.Since = m.Since.UTC()
			lines = append(lines, line)
		}
	}
	if r.lost {
		r.lost = false
		lines = append(lines, Entry{At: v.Now, Watch: EventAgain})
	}
	for _, c := range changes {
		line := entryOf(c.At, c.now)
		line.From, line.Seconds = c.before.State, c.After.Round(time.Millisecond).Seconds()
		lines = append(lines, line)
	}
	return cmp.Or(r.err, r.write(lines...))
}

func entryOf(at time.Time, m Machine) Entry {
	e := Entry{
		At: at, Node: m.ID, Name: m.Name, State: m.State, Doing: m.doing(), Instance: m.Instance, Allocation: m.Allocation,
		Failed: m.Failed,
	}
	if e.Doing == e.State {
		e.Doing = ""
	}
	if looks := m.looks(); looks != e.State {
		e.Looks = looks
	}
	if m.Failed {
		e.Reason, e.Words = m.Why.Reason, m.Why.Words
	}
	return e
}

// open opens the file, unless another watch writes to it: Ironic's states would then seem to jump to and fro. A line that a watch has left
// unfinished ends.
func (r *Recorder) open() error {
	file, err := os.OpenFile(r.File, os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o644) //nolint:gosec // a report for others
	if err != nil {
		return err
	}
	if !lock(file) {
		return errors.Join(fmt.Errorf("another metal watch records to %s. Give each a file of its own: metal timeline --record "+
			"reads several", r.File), file.Close())
	}
	r.out = file
	last, size := make([]byte, 1), int64(0)
	if info, err := file.Stat(); err == nil {
		size = info.Size()
	}
	if size == 0 {
		return nil
	}
	if _, err := file.ReadAt(last, size-1); err != nil {
		return err
	}
	if last[0] != '\n' {
		_, err = file.WriteString("\n")
	}
	return err
}

func (r *Recorder) write(lines ...Entry) error {
	if r.out == nil || len(lines) == 0 {
		return nil
	}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	for _, line := range lines {
		line.At = line.At.UTC()
		if err := encoder.Encode(line); err != nil {
			return err
		}
	}
	_, err := r.out.Write(text.Bytes())
	return err
}

// Trouble writes that the watch knows nothing until the next list.
func (r *Recorder) Trouble(v View, _ error) {
	if !r.lost {
		r.lost = true
		r.err = r.write(Entry{At: v.Now, Watch: EventLost})
	}
}

// Tick does nothing: a record has changes only.
func (r *Recorder) Tick(View) error { return nil }

// End writes that the watch has ended, and closes the file.
func (r *Recorder) End(v View) error {
	if r.out == nil {
		return nil
	}
	err := r.write(Entry{At: v.Now, Watch: EventEnded})
	unlock(r.out)
	return errors.Join(err, r.out.Close())
}

func (m *Model) machines() []Machine {
	var all []Machine
	for _, t := range m.tracks {
		if !t.gone() {
			all = append(all, t.Machine)
		}
	}
	slices.SortFunc(all, func(a, b Machine) int { return cmp.Or(words.CompareNames(a.Name, b.Name), cmp.Compare(a.ID, b.ID)) })
	return all
}

// ReadRecord reads a record. Lines that are not entries, such as one that a killed watch has left unfinished, are counted and left out.
func ReadRecord(from io.Reader) (entries []Entry, torn int, err error) {
	lines := bufio.NewReader(from)
	for {
		line, end := lines.ReadBytes('\n')
		if end != nil && !errors.Is(end, io.EOF) {
			return nil, 0, fmt.Errorf("read the record: %w", end)
		}
		var e Entry
		switch line = bytes.TrimSpace(line); {
		case len(line) == 0:
		case json.Unmarshal(line, &e) != nil || e.At.IsZero() || e.Watch == "" && (e.Node == "" || e.State == ""):
			torn++
		default:
			entries = append(entries, e)
		}
		if end != nil {
			return entries, torn, nil //nolint:nilerr // it is the end of the file
		}
	}
}
