package notes

import (
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
)

// KeyRestoring is the key of the note on a node whose record was made anew, because Ironic had lost it, while its machine stays as it is.
const KeyRestoring = "terraform_metal_restoring"

// Restoring says what the machine of a restored record was when Terraform had seen it last, and what the node gets back at the end. Until
// then it is in maintenance, and Ironic does not clean it.
type Restoring struct {
	State       ironic.State `json:"state"` // that of the host, which may be older than a deployment
	Maintenance bool         `json:"maintenance,omitempty"`
	Reason      string       `json:"reason,omitempty"`
	Clean       *bool        `json:"automated_clean,omitempty"`
	Done        bool         `json:"done,omitempty"`
	// Claim is the allocation that gets the machine from the pool, until it has it: Ironic lets none take a node with an instance UUID.
	Claim string `json:"claim,omitempty"`
}

// RestoringOf returns the note on a node; nil if it has none.
func RestoringOf(n *ironic.Node) *Restoring { return Read[Restoring](n.Extra, KeyRestoring) }

// IsRestoring reports whether the record of a node is being restored.
func IsRestoring(n *ironic.Node) bool {
	r := RestoringOf(n)
	return r != nil && !r.Done
}

// Claimant returns the reservation that has a node, or that has claimed it while its record was restored; "": none.
func Claimant(n *ironic.Node) string {
	if r := RestoringOf(n); n.InstanceUUID == "" && r != nil {
		return r.Claim
	}
	return n.InstanceUUID
}

func sayRestoring(n *ironic.Node, _ time.Time) (w Words) {
	if IsRestoring(n) {
		const text = "its record is being restored"
		w.Told = []Note{{Text: text, InProgress: true}}
		w.Left, w.Urgency = &Left{Text: text}, Begun
		w.Advice = "apply the metal_host, metal_deployment and metal_allocation of the machine with lost_records = \"restore\""
	}
	return w
}
