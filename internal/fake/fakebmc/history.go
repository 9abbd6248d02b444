package fakebmc

import "time"

// Kind is a kind of events in the history of a machine.
type Kind string

// The kinds of events. Detail of an Event says more.
const (
	PoweredOn        Kind = "powered on"
	PoweredOff       Kind = "powered off"
	Booted           Kind = "booted"            // after every power-on and every restart; Detail: the source, and the image of a CD
	Commanded        Kind = "commanded"         // a client changes the power; Detail: the ResetType
	Inserted         Kind = "inserted"          // Detail: the image
	Ejected          Kind = "ejected"           // Detail: the image
	Configured       Kind = "configured"        // a boot applied BIOS settings, volumes or firmware; Detail: what
	Updated          Kind = "updated"           // Detail: the component and its new version
	ManagerRestarted Kind = "manager restarted" //
	LoginRefused     Kind = "login refused"     // Detail: the user name
)

// Event is an entry of the history of a machine.
type Event struct {
	Time   time.Time
	Kind   Kind
	Detail string
}

// Note adds an event to the history.
func (b *BMC) Note(kind Kind, detail string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.note(kind, detail)
}

func (b *BMC) note(kind Kind, detail string) {
	b.history = append(b.history, Event{Time: time.Now(), Kind: kind, Detail: detail})
}

// History returns all events of these kinds, in their order; without kinds all.
func (b *BMC) History(kinds ...Kind) []Event {
	b.mu.Lock()
	defer b.mu.Unlock()
	var events []Event
	for _, e := range b.history {
		wanted := len(kinds) == 0
		for _, k := range kinds {
			wanted = wanted || k == e.Kind
		}
		if wanted {
			events = append(events, e)
		}
	}
	return events
}

// On reports whether the machine has power.
func (b *BMC) On() bool { return b.machine.On() }

// Medium returns the image that the CD drive holds; "" if it is empty.
func (b *BMC) Medium() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.drives[driveCD].image
}

// LastBoot returns what the firmware decided at the last boot.
func (b *BMC) LastBoot() Boot {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.lastBoot
}
