package notes

import (
	"slices"
	"strings"
	"time"

	"github.com/gophercloud/gophercloud/v2/openstack/baremetal/v1/nodes"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/clock"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/states"
)

// The notes of Work.
const (
	// KeyErasure: the last automated cleaning that a run has watched: see Work.
	KeyErasure = "terraform_metal_erasure"
	// KeyService: the last service of the deployed machine that a run has watched: see Work.
	KeyService = "terraform_metal_service"
)

// Work is the note on a node of the last automated cleaning or the last service that a run has watched. Ironic keeps no such record
// (reference/ironic.md#history-of-cleanings).
type Work struct {
	Run string `json:"run"` // that has watched it
	// that the run has requested, and that polls have seen at work, in their order. A short one may have ended between two polls
	Steps  []string  `json:"steps,omitempty"`
	Began  time.Time `json:"began"`          // at the latest, by Ironic's clock
	Ended  time.Time `json:"ended,omitzero"` // by Ironic's clock; zero: not yet
	Failed bool      `json:"failed,omitempty"`
}

// ErasureOf returns the note of an automated cleaning on a node; nil if it has none.
func ErasureOf(n *ironic.Node) *Work { return WorkOf(n, KeyErasure) }

// WorkOf returns the note that a node has below a key; nil if it has none, or if Ironic's own times contradict it: the work was on this
// node, and its end was a change of the state. Whoever may edit extra can write one that fits, so it is no proof.
func WorkOf(n *ironic.Node, key string) *Work {
	w := Read[Work](n.Extra, key)
	if !w.IsOver() || w.Ended.Before(w.Began) || w.Began.Before(n.CreatedAt.Add(-clock.Slack)) ||
		w.Ended.After(n.ProvisionUpdatedAt.Add(clock.Slack)) {
		return nil
	}
	return w
}

// IsOver reports whether the work has ended.
func (w *Work) IsOver() bool { return w != nil && !w.Ended.IsZero() }

// SeeErasure returns what is known of an automated cleaning after a look at its node. w is what was known before; nil: nothing. A cleaning
// that begins anew is another one. One that waits for an operator (clean hold) goes on.
func (w *Work) SeeErasure(n *ironic.Node, run string) *Work {
	state := ironic.State(n.ProvisionState)
	cleans := state == nodes.Cleaning || state == nodes.CleanWait || state == nodes.CleanHold
	manual := n.TargetProvisionState == string(nodes.Manageable)
	now := w.see(n, run, cleans && !manual, states.StepName(n.CleanStep), states.InCleaning(n))
	if now.IsOver() && !now.Failed && len(now.Steps) == 0 {
		return nil // Ironic may have skipped it because of automated_clean
	}
	return now
}

// SeeService does the same for a service.
func (w *Work) SeeService(n *ironic.Node, run string) *Work {
	state := ironic.State(n.ProvisionState)
	return w.see(n, run, states.Has(state, states.Service) && state != nodes.ServiceFail, states.StepName(n.ServiceStep),
		state == nodes.ServiceFail)
}

// see returns what is known after a look: whether Ironic works, at which step, and, if it does not, whether the work has failed.
func (w *Work) see(n *ironic.Node, run string, works bool, step string, failed bool) *Work {
	switch {
	case works && (w == nil || !w.Ended.IsZero()):
		w = &Work{Run: run, Began: n.ProvisionUpdatedAt.UTC()}
		fallthrough
	case works:
		if step != "" && !slices.Contains(w.Steps, step) {
			w.Steps = append(w.Steps, step)
		}
	case w != nil && w.Ended.IsZero():
		w.Ended, w.Failed = n.ProvisionUpdatedAt.UTC(), failed
		if w.Ended.Before(w.Began) { // the clock of the site is known to the second
			w.Began = w.Ended
		}
	}
	return w
}

func sayErasure(n *ironic.Node, _ time.Time) Words { return ErasureOf(n).say("automated cleaning") }

func sayService(n *ironic.Node, _ time.Time) Words { return WorkOf(n, KeyService).say("service") }

// say tells of a work that has ended; w may be nil.
func (w *Work) say(what string) (words Words) {
	if w == nil {
		return words
	}
	note := Note{At: w.Began, Until: w.Ended, Text: "the provider noted: " + what, By: "run " + w.Run, Failed: w.Failed}
	if len(w.Steps) > 0 {
		note.Text += " (" + strings.Join(w.Steps, ", ") + ")"
	}
	if w.Failed {
		note.Text += " that failed"
	}
	return Words{Told: []Note{note}}
}
