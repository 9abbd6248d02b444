package notes

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/states"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/throttle"
)

// Discovery is the record on a node of its discovery.
type Discovery struct {
	Version int    `json:"v"`
	Owner   string `json:"owner"`           // name of the metal_discovery_import
	Name    string `json:"name"`            // given once; a later change of the template does not change it
	From    string `json:"from"`            // the hardware property that the name was made from
	At      string `json:"at"`              // RFC 3339
	Taken   bool   `json:"taken,omitempty"` // a metal_host manages it
}

// DiscoveryOf returns the discovery record of a node; nil if this provider did not discover it.
func DiscoveryOf(n *ironic.Node) *Discovery {
	text, err := json.Marshal(n.Extra[KeyDiscovery])
	var d Discovery
	if err != nil || json.Unmarshal(text, &d) != nil || d.Owner == "" {
		return nil
	}
	return &d
}

// The notes that this provider keeps on a node besides the marks of creation, in extra unless stated otherwise. Ironic keeps extra and clears instance_info when
// it undeploys a node.
const (
	// KeyAllocation: the allocation that Ironic deletes with the instance. It is set before the node is undeployed, until the
	// allocation exists again (reference/ironic.md#undeploying-deletes-the-allocation).
	KeyAllocation = "terraform_metal_allocation"
	// KeyCreated, of an allocation that was created again after an undeployment: created_at of the first one. metal timeline shows it.
	KeyCreated = "terraform_metal_created"
	// KeyBoot: the live ISO that the node was booted with, and what deploying it again must restore.
	KeyBoot = "terraform_metal_boot"
	// KeyCabling: what the metal_host of the node expects of its cables, by MAC address.
	KeyCabling = "terraform_metal_cabling"
	// KeyDiscovery: which metal_discovery_import has claimed and named the node.
	KeyDiscovery = "terraform_metal_discovery"
	// KeyEnrolled: a metal_host manages this unnamed node, so discovery ignores it.
	KeyEnrolled = "terraform_metal_enrolled"
	// KeyErasure: the last automated cleaning that a run has watched: see Work.
	KeyErasure = "terraform_metal_erasure"
	// KeyService: the last service of the deployed machine that a run has watched: see Work.
	KeyService = "terraform_metal_service"
	// KeyFailures: how often operations on the node have failed since the last success. Such nodes wait longer for a slot.
	KeyFailures = "terraform_metal_failures"
	// KeyInspection: the inspection that triggers have requested last.
	KeyInspection = "terraform_metal_inspection"
	// KeyQuarantine: which allocation's deployment failed on the node, or which member left it, so that the provider has retired it.
	KeyQuarantine = "terraform_metal_quarantine"
	// KeyTurn: the node is a member of a rollout group, and away: see Turn.
	KeyTurn = "terraform_metal_turn"
	// KeyReady: the ready check of a deployment that is in progress, or has failed: see Checked.
	KeyReady = "terraform_metal_ready"
	// KeyMarker, in instance_info: what the node was deployed with.
	KeyMarker = "terraform_metal"
)

// OwnKey reports whether a key of extra or instance_info is a note of any package of this provider. Users cannot set such a key,
// and neither an import nor a data source shows it.
func OwnKey(key string) bool {
	return key == KeyMarker || strings.HasPrefix(key, "terraform_metal_") || strings.HasPrefix(key, "metal_oneview_")
}

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
	return at
}

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
	if c == nil || !c.Failed.IsZero() || now.Sub(c.Since) > checkedFor {
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
	text, err := json.Marshal(n.Extra[KeyReady])
	var c Checked
	if err != nil || json.Unmarshal(text, &c) != nil || c.Since.IsZero() || n.ProvisionUpdatedAt.Sub(c.Since) > time.Second {
		return nil
	}
	return &c
}

// Failures returns how often operations on a node have failed since the last success. A node with more failures waits longer for a
// slot, also in later runs. Another client may have written any number: as many count as the queue tells apart.
func Failures(node *ironic.Node) int {
	n, _ := node.Extra[KeyFailures].(float64)
	return int(max(0, min(n, throttle.MaxFailures)))
}

// SuspendedAllocation returns the allocation that must be created again after the node is undeployed; nil if there is none. Once the node
// runs something without a reservation, the note does not count: another client has deployed the node since.
func SuspendedAllocation(n *ironic.Node) *ironic.AllocationSpec {
	text, err := json.Marshal(n.Extra[KeyAllocation])
	if err != nil || states.RunsUnreserved(n) {
		return nil
	}
	var spec ironic.AllocationSpec
	if json.Unmarshal(text, &spec) != nil || spec.UUID == "" {
		return nil
	}
	spec.CandidateNodes = []string{n.UUID} // another client may have written the note
	delete(spec.Extra, string(MarkCreation))
	return &spec
}
