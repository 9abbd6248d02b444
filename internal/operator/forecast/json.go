package forecast

import (
	"io"
	"math"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/rest"
)

// Document is a forecast in JSON. Times are seconds from the begin of the apply.
type Document struct {
	Seconds       float64            `json:"seconds"`
	Fastest       float64            `json:"seconds_fastest"`
	Slowest       float64            `json:"seconds_slowest"`
	Parallelism   int                `json:"parallelism"`
	MaxConcurrent int                `json:"max_concurrent"`
	MostSlots     int                `json:"most_slots"`
	MostStuck     int                `json:"most_stuck"`
	UnusedSlots   map[string]float64 `json:"unused_slots"`
	Machines      []MachineDocument  `json:"machines"`
	Groups        []groupDocument    `json:"rollout_groups"`
	Notes         []string           `json:"notes"`
	Alternatives  []comparison       `json:"alternatives,omitempty"`
}

// MachineDocument is a line of it.
type MachineDocument struct {
	Address string   `json:"address"`
	Node    string   `json:"node"`
	Does    string   `json:"does"`
	MayBe   bool     `json:"may_be"`
	Begins  float64  `json:"begins"`
	Turn    float64  `json:"waits_for_turn"`
	Slot    float64  `json:"waits_for_slot"`
	From    *float64 `json:"from"` // null: it is not touched
	To      *float64 `json:"to"`
	Outcome Outcome  `json:"outcome"`
	Why     string   `json:"why,omitempty"`
}

// groupDocument is a rollout group of it.
type groupDocument struct {
	Name           string `json:"name"`
	Members        int    `json:"members"`
	MostAway       int    `json:"most_away"`
	MaxUnavailable int    `json:"max_unavailable"`
}

// comparison is an alternative of it.
type comparison struct {
	With       string  `json:"with"`
	Seconds    float64 `json:"seconds"`
	MostSlots  int     `json:"most_slots"`
	Failed     int     `json:"failed"`
	NotStarted int     `json:"not_started"`
}

// WriteJSON writes a forecast and its alternatives as a document.
func (r *Result) WriteJSON(to io.Writer, alternatives []Alternative) error {
	d := Document{
		Seconds: seconds(r.Total), Fastest: seconds(r.Fastest), Slowest: seconds(r.Slowest), Parallelism: r.Places, MaxConcurrent: r.Slots,
		MostSlots: r.Most, MostStuck: r.Stuck,
		UnusedSlots: map[string]float64{
			"parallelism": tenth(r.Unused.Parallelism), "rollout": tenth(r.Unused.Rollout), "dependencies": tenth(r.Unused.Dependencies),
			"no_machines": tenth(r.Unused.NoMachines),
		},
		Machines: []MachineDocument{}, Groups: []groupDocument{}, Notes: append([]string{}, r.Notes...),
	}
	for i := range r.Lines {
		l := &r.Lines[i]
		m := MachineDocument{
			Address: l.Address, Node: l.Name, Does: l.Does, MayBe: l.MayBe, Begins: seconds(l.Begins), Turn: seconds(l.Turn),
			Slot: seconds(l.Slot), Outcome: l.Outcome, Why: l.Why,
		}
		if from, until := seconds(l.From), seconds(l.To); l.Outcome == Done || l.Outcome == Failed {
			m.From, m.To = &from, &until
		}
		d.Machines = append(d.Machines, m)
	}
	for _, g := range r.Groups {
		d.Groups = append(d.Groups, groupDocument{g.Name, g.Members, g.Most, g.May})
	}
	for _, a := range alternatives {
		d.Alternatives = append(d.Alternatives, comparison{
			a.Label, seconds(a.Result.Total), a.Result.Most, a.Result.Count(Failed),
			a.Result.Count(NotStarted),
		})
	}
	return rest.WriteJSON(to, d)
}

func seconds(d time.Duration) float64 { return math.Round(d.Seconds()) }

func tenth(n float64) float64 { return math.Round(n*10) / 10 }
