package notes

import (
	"fmt"
	"strings"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/clock"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/rest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/states"
)

// KeyReady is the key of the note of a ready check that is in progress, or has failed: see Checked.
const KeyReady = "terraform_metal_ready"

// Checked is the note on a node of a ready check that is in progress, or has failed. Ironic itself shows such a machine as active.
type Checked struct {
	Since  time.Time `json:"since"`           // by the clock of the site
	Target string    `json:"target"`          // without secrets
	Failed time.Time `json:"failed,omitzero"` // when the time-out ended, by the clock of the site
}

// checkedFor is how long the note of a ready check in progress counts at most. A run that is killed leaves it.
const checkedFor = time.Hour

// CheckOf returns the ready check in progress on a node at a time; nil if there is none.
func CheckOf(n *ironic.Node, now time.Time) *Checked {
	c := checkOf(n)
	if c == nil || !c.Failed.IsZero() || !clock.IsYoung(c.Since, now, checkedFor) {
		return nil
	}
	return c
}

// NotReadyOf returns the last ready check of what is deployed on a node if it has failed; else nil.
func NotReadyOf(n *ironic.Node) *Checked {
	c := checkOf(n)
	if c == nil || c.Failed.IsZero() {
		return nil
	}
	return c
}

// checkOf returns the note of a ready check on a node; nil if it has none. A note counts no longer when the state of the node changes.
func checkOf(n *ironic.Node) *Checked {
	c := Read[Checked](n.Extra, KeyReady)
	if c == nil || c.Since.IsZero() || n.ProvisionUpdatedAt.Sub(c.Since) > time.Second {
		return nil
	}
	if strings.Contains(c.Target, "://") {
		c.Target = rest.Origin(c.Target) // others may have written it
	}
	return c
}

func sayReady(n *ironic.Node, now time.Time) (w Words) {
	if c := checkOf(n); c != nil {
		w.Told = []Note{{At: c.Since, Text: "ready check of " + c.Target, InProgress: CheckOf(n, now) != nil}}
		if w.Told[0].InProgress {
			w.Left = &Left{Text: "a run checks whether it is ready: " + c.Target, Since: c.Since}
		}
	}
	if c := NotReadyOf(n); c != nil {
		w.Left = &Left{Text: "it was not ready: " + c.Target, Since: c.Failed, Failed: true}
		w.Told = []Note{{At: c.Since, Until: c.Failed, Text: "ready check of " + c.Target + " that failed", Failed: true}}
		if !states.IsInProgress(n) {
			w.Urgency, w.Advice = Broken, fmt.Sprintf("What is deployed on the machine was not ready at %s: %s. Look at its console "+
				"(metal console %s) and mend the cause. The next apply checks again.", c.Failed.UTC().Format(time.RFC3339), c.Target,
				ironic.NodeArgument(n))
		}
	}
	return w
}
