package host

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/notes"
)

// requested is the note of an inspection that triggers have requested, so that a later run finishes it after an interruption, and
// does not repeat it after a kill.
type requested struct {
	Triggers string `json:"triggers"` // their Fingerprint
	Before   string `json:"before"`   // when the node had been inspected by then; empty: never
}

// Fingerprint returns a short text that differs for different triggers.
func Fingerprint(triggers map[string]string) string {
	text, err := json.Marshal(triggers) // sorted by key
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}

// RequestInspection adds to the patch of a node the note that triggers with this fingerprint request an inspection, unless the node
// has it.
func RequestInspection(p *ironic.Patch, n *ironic.Node, triggers string) {
	if note := requestedOn(n); note == nil || note.Triggers != triggers {
		p.Set("/extra/"+notes.KeyInspection, map[string]any{"triggers": triggers, "before": inspectedAtText(n)})
	}
}

// EndInspection notes that the inspection that triggers have requested has succeeded. It sends something only if two inspections
// have ended within the same second, because their times are then equal.
func EndInspection(ctx context.Context, m *machine.Machine) error {
	triggers, succeeded := RequestedInspection(m.Node())
	if triggers == "" || succeeded {
		return nil
	}
	var p ironic.Patch
	p.Set("/extra/"+notes.KeyInspection, map[string]any{"triggers": triggers, "before": ""})
	return m.Patch(ctx, p)
}

// forgetInspection adds the removal of that note to the patch of a node.
func forgetInspection(p *ironic.Patch, n *ironic.Node) {
	if n.Extra[notes.KeyInspection] != nil {
		p.Remove("/extra/" + notes.KeyInspection)
	}
}

// RequestedInspection returns the fingerprint of the triggers that have requested the last inspection, and whether that has
// succeeded since. It is empty if no triggers have.
func RequestedInspection(n *ironic.Node) (triggers string, succeeded bool) {
	note := requestedOn(n)
	if note == nil {
		return "", false
	}
	at := inspectedAtText(n)
	return note.Triggers, at != "" && at != note.Before
}

// PendingInspection returns the fingerprint of the triggers whose inspection is still to come; empty if there is none.
func PendingInspection(n *ironic.Node) string {
	if triggers, succeeded := RequestedInspection(n); !succeeded {
		return triggers
	}
	return ""
}

// requestedOn reads the note; nil if there is none.
func requestedOn(n *ironic.Node) *requested {
	text, err := json.Marshal(n.Extra[notes.KeyInspection])
	var note *requested
	if err != nil || json.Unmarshal(text, &note) != nil {
		return nil
	}
	return note
}

// inspectedAtText returns when a node was last inspected; empty if it never was, or if an inspection is in progress or has failed
// since (reference/ironic.md#inspections).
func inspectedAtText(n *ironic.Node) string {
	if at := machine.InspectedAt(n); !at.IsZero() {
		return at.Format(time.RFC3339)
	}
	return ""
}
