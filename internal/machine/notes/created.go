package notes

import (
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
)

// KeyCreated is the key of the note on an allocation that was created again after an undeployment: created_at of the first one.
// metal timeline shows it.
const KeyCreated = "terraform_metal_created"

// KeepCreated notes in an allocation that is created again when it was created first, unless it was created again before.
func KeepCreated(spec *ironic.AllocationSpec, created string) {
	if _, again := spec.Extra[KeyCreated]; again || created == "" {
		return
	}
	if spec.Extra == nil {
		spec.Extra = map[string]any{}
	}
	spec.Extra[KeyCreated] = created
}

// FirstCreated returns when an allocation was created first; zero if it was not created again.
func FirstCreated(extra map[string]any) time.Time {
	text, _ := extra[KeyCreated].(string)
	at, _ := time.Parse(time.RFC3339, text)
	return plainTime(at)
}
