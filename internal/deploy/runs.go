package deploy

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gophercloud/gophercloud/v2/openstack/baremetal/v1/nodes"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/document"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/notes"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/states"
)

// InstanceSettings is the content that the instance_info of a deployed node tells by a key of the same name. It can be stored as JSON.
type InstanceSettings map[string]any

// SettingsOf returns the settings with which a node was deployed.
func SettingsOf(n *ironic.Node) InstanceSettings {
	s := InstanceSettings{}
	for _, key := range contentTold(toldByKey) {
		value := n.InstanceInfo[key]
		if text, is := value.(string); is { // some clients write JSON as a text
			var object map[string]any
			if document.Decode([]byte(text), &object) == nil {
				value = object
			}
		}
		if list, is := value.([]any); is {
			value = slices.SortedFunc(slices.Values(list), func(a, b any) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
		}
		if value != nil {
			s[key] = value
		}
	}
	return s
}

// Contradict reports whether a deployment has another value of a key than the node. Keys that Settings does not have never
// contradict.
func (s InstanceSettings) Contradict(key string, d Deployment) bool {
	return slices.Contains(contentTold(toldByKey), key) && !ironic.SameJSON(s[key], d.AsInstanceInfo()[key])
}

// ImageSource returns the URL of the image that a node was deployed with. Ironic changes it if the URL redirects.
func ImageSource(n *ironic.Node) string {
	url, _ := n.InstanceInfo[keyImageSource].(string)
	return url
}

// InstanceMarker records on the node, before the verb is sent, what it is about to be deployed with. If the node has changed its provision
// state since then, Ironic has accepted the verb; this is how the next run knows after an interruption.
type InstanceMarker struct {
	Digest string       `json:"digest"`
	State  ironic.State `json:"state"`           // when the marker was written
	Since  string       `json:"since"`           // when the node entered that state
	Power  string       `json:"power,omitempty"` // for a boot without a verb: the time of the node's last power change
	Keys   []string     `json:"keys,omitempty"`  // keys of instance_info that were written for this deployment
	VIFs   []string     `json:"vifs,omitempty"`  // that this provider has attached, or was about to
	// Address is where the image that was deployed is now, if this provider has told Ironic another address since.
	Address string `json:"address,omitempty"`
	// Restart is the last start for restart_triggers: of this deployment, or of the machine while it runs it
	Restart *Restarted `json:"restart,omitempty"`
}

// InstanceMarkerOf returns the marker of a node; the zero value if it has none.
func InstanceMarkerOf(n *ironic.Node) (m InstanceMarker) {
	text, err := json.Marshal(n.InstanceInfo[notes.KeyMarker])
	if err == nil {
		_ = json.Unmarshal(text, &m) // another client wrote it if it does not parse
	}
	return m
}

func (m InstanceMarker) taken(n *ironic.Node) bool {
	if m.Power != "" {
		return m.Power != machine.LastPowerChange(n)
	}
	return m.State != ironic.State(n.ProvisionState) || m.Since != deployedSince(n)
}

// deployedSince returns when the node has entered its provision state, as markers have it.
func deployedSince(n *ironic.Node) string { return n.ProvisionUpdatedAt.UTC().Format(time.RFC3339Nano) }

// Footprint is what a node showed of its deployment when a run knew that the node matched the state. It can be stored as JSON. The
// zero value contains no knowledge.
type Footprint struct {
	Mark  string `json:"mark,omitempty"`  // digest of the marker; "none" without one
	Image string `json:"image,omitempty"` // image_source; Ironic follows redirects, so it may differ from the configured URL
}

// FootprintOf returns the footprint of a node that was just read in full.
func FootprintOf(n *ironic.Node) Footprint { return Footprint{Mark: markOf(n), Image: ImageSource(n)} }

func markOf(n *ironic.Node) string { return cmp.Or(InstanceMarkerOf(n).Digest, "none") }

// RedeployedSince reports whether a run of this provider has deployed the node since the footprint was taken, and was killed
// before it could record that.
func (f Footprint) RedeployedSince(n *ironic.Node) bool { return f.Mark != "" && f.Mark != markOf(n) }

// Readdressed reports whether the address of the node's image is one that this provider has told Ironic of the image that runs.
func Readdressed(n *ironic.Node) bool {
	address := InstanceMarkerOf(n).Address
	return address != "" && address == ImageSource(n)
}

// OtherImage reports whether the node's image differs from the footprint's.
func (f Footprint) OtherImage(n *ironic.Node) bool { return f.Image != ImageSource(n) }

// RunsOn decides before a rebuild whether the node already runs the deployment: its marker says so, and no other client has
// written another image since.
func (d Deployment) RunsOn(n *ironic.Node, known Footprint) bool {
	return d.DeployedWith(n) && (d.Image == nil || d.Image.URL == ImageSource(n) || known.RedeployedSince(n))
}

// DeployedWith reports whether a node runs this deployment or is being deployed with it.
func (d Deployment) DeployedWith(n *ironic.Node) bool {
	return runningContent(n) == d.Digest()
}

// runningContent returns the digest of the provider's deployment that a node runs or is being deployed with; "" if there is none.
func runningContent(n *ironic.Node) string {
	if m := InstanceMarkerOf(n); m.taken(n) {
		return m.Digest
	}
	return ""
}

// RunsInstance reports whether a node is active and runs what its instance_info says. instance_info may say something else after a
// rebuild was prepared and not started.
func RunsInstance(n *ironic.Node) bool {
	return ironic.State(n.ProvisionState) == nodes.Active && InstanceMarkerOf(n).taken(n)
}

// LossReason says why a node does not belong to an instance any more; "" if it does. A node that is being undeployed still belongs to it
// if the allocation will be created again or the node will be deployed again, and so does one whose undeploying has failed.
func LossReason(n *ironic.Node, instance, allocation string) string {
	if q := notes.UnfinishedQuarantine(n, instance); q != nil {
		return "is in quarantine: " + q.String()
	}
	if n.InstanceUUID == instance && instance != "" {
		return ""
	}
	spec := notes.SuspendedAllocation(n)
	if n.InstanceUUID == "" && (states.UndeployFailed(n) || spec != nil && spec.UUID == allocation || deployedAgain(n, instance)) {
		return ""
	}
	switch {
	case n.InstanceUUID != "":
		return fmt.Sprintf("is reserved by %s now: another user has deployed it or is about to", n.InstanceUUID)
	case ironic.State(n.ProvisionState) == nodes.Active:
		return "still runs, but its reservation was removed, so this resource does not manage it any more. Import it to manage it again"
	}
	return fmt.Sprintf("was undeployed, not by this resource, and is in state %q", n.ProvisionState)
}
