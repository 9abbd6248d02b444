package sharing

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/routine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/oneview"
)

// Outcome is the result of the work on a node.
type Outcome string

// The outcomes.
const (
	Changed   Outcome = "changed"   // in a dry run: would be changed
	Unchanged Outcome = "unchanged" // the node needs no change
	Warned    Outcome = "warning"   // a warning for the operator, in addition to a change
	Skipped   Outcome = "skipped"   // another operation is in progress on the node: the next run tries again
	Failed    Outcome = "failed"    // the node is unchanged, or partly changed; the next run continues
)

// Finding reports the outcome for one node, in one line.
type Finding struct {
	NodeID, NodeName string
	Outcome          Outcome
	Text             string // the change, the planned change of a dry run, or the reason why there is none
	Err              error  // of Failed
}

// Node names the node in messages.
func (f Finding) Node() string {
	return ironic.NodeLabel(&ironic.Node{UUID: f.NodeID, Name: f.NodeName})
}

// Tally counts findings.
type Tally struct{ Changed, Unchanged, Warned, Skipped, Failed int }

type findings struct {
	report   func(Finding) // may be nil
	progress Progress      // may be nil

	mu    sync.Mutex
	tally Tally
}

// Progress is called after each node with the number of finished nodes and of all nodes, by one goroutine at a time.
type Progress func(doing string, done, total int)

func (f *findings) tell(node *ironic.Node, outcome Outcome, text string) {
	f.add(Finding{NodeID: node.UUID, NodeName: node.Name, Outcome: outcome, Text: text})
}

// fail reports why an operation on a node has failed. It reports a node as skipped, not failed, if the node has changed or Ironic has
// an operation in progress on it. After the run was stopped it reports nothing.
func (f *findings) fail(ctx context.Context, node *ironic.Node, doing string, err error) {
	switch {
	case ctx.Err() != nil:
	case errors.Is(err, errOutdated):
		f.tell(node, Skipped, "it has changed meanwhile")
	case errors.Is(err, machine.ErrNoSlot):
		f.tell(node, Skipped, machine.ErrNoSlot.Error())
	case machine.IsFrozen(err):
		f.tell(node, Skipped, err.Error())
	case machine.IsBusy(err):
		f.tell(node, Skipped, "Ironic has an operation in progress on it: "+err.Error())
	default:
		f.add(Finding{NodeID: node.UUID, NodeName: node.Name, Outcome: Failed, Text: doing, Err: err})
	}
}

func (f *findings) add(finding Finding) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch finding.Outcome {
	case Changed:
		f.tally.Changed++
	case Unchanged:
		f.tally.Unchanged++
	case Warned:
		f.tally.Warned++
	case Skipped:
		f.tally.Skipped++
	case Failed:
		f.tally.Failed++
	}
	if f.report != nil {
		f.report(finding)
	}
}

// errOutdated says that a node has changed since the decision about it.
var errOutdated = errors.New("it has changed meanwhile")

// candidate is a node to work on.
type candidate struct {
	node    *ironic.Node
	binding Binding

	hardware  *oneview.Hardware // as read last; nil: not read
	temporary *oneview.Profile  // a temporary profile that was made for this node, and is on its hardware; nil: none
	action    Action
}

// each works on the candidates, parallel of them at once, until all are done or ctx ends. A panic fails only its node.
func (f *findings) each(ctx context.Context, doing string, parallel int, all []*candidate, work func(context.Context, *candidate)) {
	done := 0
	routine.Each(len(all), parallel, func(i int) error { //nolint:errcheck // guarded stores the errors
		if ctx.Err() != nil {
			return nil
		}
		f.guarded(ctx, all[i], work)
		f.mu.Lock()
		defer f.mu.Unlock()
		if done++; f.progress != nil {
			f.progress(doing, done, len(all))
		}
		return nil
	})
}

func (f *findings) guarded(ctx context.Context, c *candidate, work func(context.Context, *candidate)) {
	if err := func() (err error) {
		defer routine.Recover(&err)
		work(ctx, c)
		return nil
	}(); err != nil {
		f.fail(ctx, c.node, "work on it", err)
	}
}

// Standing is the state of a node and its hardware at one moment.
type Standing struct {
	NodeID         string `json:"node_id"`
	NodeName       string `json:"node_name"`
	ProvisionState string `json:"provision_state"`

	Maintenance       bool   `json:"maintenance"`
	MaintenanceReason string `json:"maintenance_reason"`

	Mode         Mode               `json:"mode"`
	Owner        Ownership          `json:"owner"` // OwnershipUnknown if the hardware could not be read
	HardwareURI  string             `json:"server_hardware_uri"`
	HardwareName string             `json:"server_hardware_name"`
	PowerState   oneview.PowerState `json:"power_state"`
	ProfileURI   string             `json:"server_profile_uri"`  // on the hardware; empty: none
	ProfileName  string             `json:"server_profile_name"` // empty: none, or it could not be read
	// OneView is removing it from the hardware; until then, Owner is as before
	Removing   bool   `json:"server_profile_removing"`
	AppliedURI string `json:"applied_server_profile_uri"`

	// Next is the action of the next pass of Sync; Leave also if the pass can do nothing.
	Next  Action `json:"next"`
	Error string `json:"error"` // why the hardware could not be read; empty: it could
}

// Status returns who uses the hardware of every node in OneView, ordered by node name. It requests three lists, and each hardware
// that is not in the list.
func (p *Pool) Status(ctx context.Context) ([]Standing, error) {
	found, err := p.Site.Ironic.ListNodeFields(ctx, ironic.NodeFilter{}, syncFields)
	if err != nil {
		return nil, fmt.Errorf("list nodes: %w", err)
	}
	hardware, err := p.hardwareByURI(ctx)
	if err != nil {
		return nil, err
	}
	profiles, err := p.OneView.ListProfiles(ctx, oneview.ProfileFilter{})
	if err != nil {
		return nil, err
	}
	byURI := make(map[string]*oneview.Profile, len(profiles))
	for i := range profiles {
		byURI[oneview.URIKey(profiles[i].URI)] = &profiles[i]
	}
	all := []Standing{}
	for i := range found {
		binding, err := BindingOf(&found[i])
		if binding.HardwareURI == "" {
			continue
		}
		s := standingOf(&found[i], binding)
		h := hardware[oneview.URIKey(binding.HardwareURI)]
		if h == nil && err == nil {
			h, err = p.OneView.Hardware(ctx, binding.HardwareURI)
		}
		if err != nil {
			s.Error = err.Error()
		} else {
			s.addHardware(&found[i], binding, h, byURI[oneview.URIKey(h.ProfileURI)])
		}
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, b Standing) int {
		return cmp.Or(cmp.Compare(a.NodeName, b.NodeName), cmp.Compare(a.NodeID, b.NodeID))
	})
	return all, ctx.Err()
}

func (p *Pool) hardwareByURI(ctx context.Context) (map[string]*oneview.Hardware, error) {
	all, err := p.OneView.ListHardware(ctx, oneview.HardwareFilter{})
	if err != nil {
		return nil, err
	}
	byURI := make(map[string]*oneview.Hardware, len(all))
	for i := range all {
		byURI[oneview.URIKey(all[i].URI)] = &all[i]
	}
	return byURI, nil
}

// standingOf returns the part of the state that the node itself has.
func standingOf(node *ironic.Node, binding Binding) Standing {
	return Standing{
		NodeID: node.UUID, NodeName: node.Name, ProvisionState: node.ProvisionState,
		Maintenance: node.Maintenance, MaintenanceReason: node.MaintenanceReason,
		Mode: binding.Mode, Owner: OwnershipUnknown, HardwareURI: binding.HardwareURI, AppliedURI: binding.AppliedURI, Next: Leave,
	}
}

// addHardware adds the state of the hardware. profile may be nil.
func (s *Standing) addHardware(node *ironic.Node, binding Binding, h *oneview.Hardware, profile *oneview.Profile) {
	s.HardwareName, s.PowerState, s.ProfileURI = h.Name, h.PowerState, h.ProfileURI
	s.Owner, s.Removing = Owner(h.ProfileURI, binding.AppliedURI), h.RemovesProfile()
	if profile != nil {
		s.ProfileName = profile.Name
		if madeFor(profile, node.UUID) && oneview.SameURI(profile.HardwareURI, h.URI) {
			s.Owner = UsedByIronic
		}
	}
	if binding.Shared() {
		s.Next = actionFor(s.Owner, ironic.State(node.ProvisionState), maintenanceOf(node))
	}
	stays := s.Next == Return && (node.Retired || lacksTemplate(node, s.Owner, binding))
	if stays || node.Reservation != "" {
		s.Next = Leave
	}
}
