package oneview

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
)

// Standing is how a node and its hardware stand at one moment.
type Standing struct {
	NodeID         string `json:"node_id"`
	NodeName       string `json:"node_name"`
	ProvisionState string `json:"provision_state"`

	Maintenance       bool   `json:"maintenance"`
	MaintenanceReason string `json:"maintenance_reason"`

	Mode         Mode       `json:"mode"`
	Owner        Ownership  `json:"owner"` // OwnershipUnknown if the hardware could not be read
	HardwareURI  string     `json:"server_hardware_uri"`
	HardwareName string     `json:"server_hardware_name"`
	PowerState   PowerState `json:"power_state"`
	ProfileURI   string     `json:"server_profile_uri"`  // on the hardware; empty: none
	ProfileName  string     `json:"server_profile_name"` // empty: none, or it could not be read
	AppliedURI   string     `json:"applied_server_profile_uri"`

	// Next is what the next pass of Sync does with the node; Leave also if it can do nothing.
	Next  Action `json:"next"`
	Error string `json:"error"` // why the hardware could not be read; empty: it could
}

// Status tells who holds the hardware of every node that has some in OneView, in the order of the nodes' names. It costs
// three lists, however many nodes there are, and a request for each node whose hardware is not in the list.
func (p *Pool) Status(ctx context.Context) ([]Standing, error) {
	found, err := p.Ironic.ListNodeFields(ctx, ironic.NodeFilter{}, syncFields)
	if err != nil {
		return nil, fmt.Errorf("list nodes: %w", err)
	}
	hardware, err := p.hardwareByURI(ctx)
	if err != nil {
		return nil, err
	}
	profiles, err := p.OneView.ListProfiles(ctx, ProfileFilter{})
	if err != nil {
		return nil, err
	}
	byURI := make(map[string]*Profile, len(profiles))
	for i := range profiles {
		byURI[normalURI(profiles[i].URI)] = &profiles[i]
	}
	all := []Standing{}
	for i := range found {
		binding, err := BindingOf(&found[i])
		if binding.HardwareURI == "" {
			continue
		}
		s := standingOf(&found[i], binding)
		h := hardware[normalURI(binding.HardwareURI)]
		if h == nil && err == nil {
			h, err = p.OneView.Hardware(ctx, binding.HardwareURI)
		}
		if err != nil {
			s.Error = err.Error()
		} else {
			s.see(&found[i], binding, h, byURI[normalURI(h.ProfileURI)])
		}
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, b Standing) int {
		return cmp.Or(cmp.Compare(a.NodeName, b.NodeName), cmp.Compare(a.NodeID, b.NodeID))
	})
	return all, ctx.Err()
}

// hardwareByURI reads all hardware, by normal URI.
func (p *Pool) hardwareByURI(ctx context.Context) (map[string]*Hardware, error) {
	all, err := p.OneView.ListHardware(ctx, HardwareFilter{})
	if err != nil {
		return nil, err
	}
	byURI := make(map[string]*Hardware, len(all))
	for i := range all {
		byURI[normalURI(all[i].URI)] = &all[i]
	}
	return byURI, nil
}

// standingOf is what the node alone tells.
func standingOf(node *ironic.Node, binding Binding) Standing {
	return Standing{
		NodeID: node.UUID, NodeName: node.Name, ProvisionState: node.ProvisionState,
		Maintenance: node.Maintenance, MaintenanceReason: node.MaintenanceReason,
		Mode: binding.Mode, Owner: OwnershipUnknown, HardwareURI: binding.HardwareURI, AppliedURI: binding.AppliedURI, Next: Leave,
	}
}

// see adds what the hardware tells. profile may be nil.
func (s *Standing) see(node *ironic.Node, binding Binding, h *Hardware, profile *Profile) {
	s.HardwareName, s.PowerState, s.ProfileURI = h.Name, h.PowerState, h.ProfileURI
	s.Owner = Owner(h.ProfileURI, binding.AppliedURI)
	if profile != nil {
		s.ProfileName = profile.Name
		if profile.madeFor(node.UUID) && sameURI(profile.HardwareURI, h.URI) {
			s.Owner = UsedByIronic
		}
	}
	if binding.Shared() {
		s.Next = Decide(s.Owner, ironic.State(node.ProvisionState), maintenanceOf(node))
	}
	stays := s.Next == Return && (node.Retired || lacksTemplate(node, s.Owner, binding))
	if stays || node.Reservation != "" {
		s.Next = Leave
	}
}
