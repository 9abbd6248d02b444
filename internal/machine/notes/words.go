package notes

import (
	"encoding/json"
	"time"
)

// Hearsay says to people what a note is worth.
const Hearsay = "Notes are in extra in Ironic, which members of the owner and of the lessee of a node may edit: they are no proof."

// Words are what a note says of itself to people. The zero value says nothing.
type Words struct {
	Told    []Note  // what has happened, or happens
	Left    *Left   // what a run or a command has begun and not ended; nil: nothing
	Advice  string  // what to do about it; "": nothing
	Urgency Urgency // of the advice
}

// Urgency is how urgent an advice is.
type Urgency int

// The urgencies of advice, the most urgent first.
const (
	Broken Urgency = iota // what runs on the machine may not work
	Begun                 // something was begun, and does not go on by itself
	Unused                // the machine is out of use
)

// Left is what a run or a command of metal has noted and not ended: it is at work, has failed or was killed.
type Left struct {
	Text   string    // a clause about the machine
	Run    string    // "" if the note does not tell
	Since  time.Time // zero if the note does not tell
	Failed bool      // it has failed, so that no run is at work on it
	Passes bool      // it is as it is to be, and passes by itself
	Next   string    // what to do about it, if that is not to apply again
}

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

// Read reads the note below a key of extra; nil if there is none, or if another client has written what is no such note.
func Read[T any](extra map[string]any, key string) *T {
	value, exists := extra[key]
	text, err := json.Marshal(value)
	var note *T
	if !exists || err != nil || json.Unmarshal(text, &note) != nil {
		return nil
	}
	return note
}
