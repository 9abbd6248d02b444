// Package deploy decides what a plan of a deployment does: one pure function, Decide, in plan.go. What needs a server is in look.go.
package deploy

import (
	"cmp"
	"fmt"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/decide"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/deploy/bootiso"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/deploy/deployinterface"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
)

// Text is an attribute as text, to compare it with another one. It is unknown if any part of the attribute is.
type Text = decide.Value[string]

// OnChange says what a change of content does.
type OnChange string

// The values of on_change.
const (
	ChangeRebuilds OnChange = "rebuild"
	ChangeReplaces OnChange = "replace"
	ChangeIgnored  OnChange = "ignore"
)

// OnDestroy says what destroying a deployment does.
type OnDestroy string

// The values of on_destroy.
const (
	DestroyUndeploys OnDestroy = "undeploy"
	DestroyForgets   OnDestroy = "forget"
)

// PowerState is the power state of a machine.
type PowerState string

// The power states.
const (
	PowerOn  PowerState = "on"
	PowerOff PowerState = "off"
)

// Wish is what the configuration asks for. Seen.Was is the wish that the state has recorded.
type Wish struct {
	Destroy bool // the resource is to be destroyed

	Node, Allocation Text
	Name             Text            // of the instance; null: it stays as it is
	Content          map[string]Text // by ContentNames, in one spelling: see Deployment.Texts
	Address          Text            // of the image, see Image.Address; not a part of the content
	Drive            map[string]Text // the parts of config_drive; nil: there is none, or it is not known
	Hidden           bool            // ignore_changes keeps the version of a secret, and hides the secret itself from the plan
	LiveISO          decide.Value[LiveISO]
	Adopt            bool
	AdoptOpen        bool // it is not known whether the deployment adopts
	Rebuild, Restart Text // the triggers; a first value, and none, is only recorded
	Rescue           Text // the version of the password
	VIFs             Text
	Ports            []VIF // the VIFs, if they are known
	Protected        decide.Value[bool]
	Power            decide.Value[PowerState]
	ReadyCheck       Text
	OffMode          decide.Value[machine.OffMode] // how a machine that runs is switched off, also for a restart
	OnChange         decide.Value[OnChange]
	DefaultOnChange  decide.Value[OnChange] // of the provider
	OnDestroy        decide.Value[OnDestroy]
	Quarantines      bool
	MaxNodes         int
	Tries            int // of a deployment, at most; 0: one

	Deployment Deployment // what Ironic is asked for, as far as it is known
}

// forgets reports whether destroying the deployment leaves its machine running.
func (w Wish) forgets() bool { return w.OnDestroy.V == DestroyForgets }

// EndsAdoption reports whether destroying the resource ends an adoption and leaves a machine that runs alone.
func (w Wish) EndsAdoption() bool { return w.Adopt && w.OnDestroy.V != DestroyUndeploys }

// stops says in messages what power_off_mode does to a machine that runs.
func (w Wish) stops() string {
	const asks = "Its operating system is asked to shut down. If the machine stays on"
	switch {
	case w.OffMode.Unknown:
		return "How is not known yet: power_off_mode says it."
	case w.OffMode.V == machine.OffSoft:
		return asks + ", the apply fails."
	case w.OffMode.V == machine.OffGraceful:
		return fmt.Sprintf("%s for %.0f minutes, its power is cut.", asks, machine.SoftOffTimeout.Minutes())
	}
	return "Its power is cut. With power_off_mode = \"graceful\", its operating system would be asked first."
}

// content says in messages what a wish deploys.
func (w Wish) content() string {
	switch image := w.Deployment.Image; {
	case !w.LiveISO.IsNull():
		return "a live ISO"
	case image != nil && image.URL != "":
		return "the image " + image.URL
	case !w.Content[attrImage].IsNull():
		return "an image"
	}
	return "neither an image nor a live ISO"
}

// deployed returns the wish as its deploy interface sees it.
func (w Wish) deployed() deployinterface.Deployment {
	return deployinterface.Deployment{Info: w.Deployment.AsInstanceInfo(), Steps: !w.Content[attrDeploySteps].IsNull() ||
		len(w.Deployment.Traits) > 0}
}

// LiveISO is the wished live ISO.
type LiveISO struct {
	Want  bootiso.Want    // what is known of it
	Parts map[string]Text // its attributes by name
}

// Seen is what the state, private state and the last read say of a deployment, and what was looked up for the plan.
type Seen struct {
	New bool // the state has no deployment; nothing else is set then but Now

	Was                Wish // what the state has recorded
	ID, Instance       string
	State              ironic.State
	LastError          Text
	Attempts           decide.Value[int64]
	Rebuilds, Restarts int64
	Power              decide.Value[PowerState]
	Protected          bool
	Name               Text // of the instance
	Boot               decide.Value[bootiso.Status]
	Ready              decide.Value[bool] // null: what runs has not been checked since the machine was off, in rescue mode or not deployed

	Past    History
	Unbegun bool     // the creation was interrupted before Ironic was seen at work
	Names   []string // that the node had since it was deployed, besides the present one
	Sight   Sight
	Runs    Footprint // of the node as of the recorded deployment
	Last    Wanted
	Restart Restarted // what was noted on the node as of the recorded deployment

	HostEnds   bool // the plan destroys the host, and with it the node
	LosesNode  bool // the plan replaces the host, and node_id names another node after it
	HostLeaves bool // the plan replaces the host, and node_id stays
	// the plan replaces the allocation, or moves the member of a group that it is
	LosesReservation bool
	KeepsDisks       bool   // the plan lets the node keep disks that it does not keep yet
	Disks            Disks  // looked up if the plan writes the root disk in place
	Freed            bool   // the plan undeploys the node, because its machine was replaced
	PlannedName      string // the name that the plan gives to the node; "" if none
	Label            string // names the node in messages
	Now              time.Time
}

// Sight is what a plan needs to know of the node, as of the last read. It is kept in private state: a saved plan is planned again when
// it is applied, and the node may have changed since.
type Sight struct {
	Name string `json:"name"` // of the node
	// digest of the provider's deployment that the node runs or is being deployed with; "" if there is none
	Content string            `json:"content"`
	Boot    bootiso.Candidate `json:"boot"` // what the decision about a live ISO depends on

	Restart Restarted `json:"restart,omitzero"` // that has happened

	Maintenance bool   `json:"maintenance,omitempty"`
	Switched    string `json:"switched,omitempty"` // when Ironic last changed the power; "" if that is not known

	Deploy deployinterface.Name `json:"deploy"` // the deploy interface in use
	// the one that autodetect has chosen and that stays until the node is undeployed; "" if there is none
	Detected deployinterface.Name `json:"detected"`
}

// SightOf returns the sight of a node.
func SightOf(node *ironic.Node) Sight {
	s := Sight{
		Name: node.Name, Content: runningContent(node), Boot: BootFacts(node), Maintenance: machine.ByPeople(node),
		Restart: DoneRestart(node),
	}
	s.Switched = machine.PowerChangedAt(node)
	s.Deploy = cmp.Or(deployinterface.Deployment{Info: node.InstanceInfo}.Override(), deployinterface.Name(node.ActingDeploy))
	if node.DeployInterface != node.ActingDeploy {
		s.Detected = deployinterface.Name(node.ActingDeploy)
	}
	return s
}

// Wanted is the live ISO that an apply has wanted last. The machine may run an older one.
type Wanted struct {
	Image     string            `json:"image"` // bootiso.Artifacts.Digest without named content: a hash of the image's identity
	At        time.Time         `json:"at"`    // when an apply first wanted that image
	Artifacts bootiso.Artifacts `json:"artifacts"`
}
