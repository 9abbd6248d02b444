package sharing

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/oneview"
)

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
	AppliedURI   string             `json:"applied_server_profile_uri"`

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

// hardwareByURI reads all hardware, by normal URI.
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
	s.Owner = Owner(h.ProfileURI, binding.AppliedURI)
	if profile != nil {
		s.ProfileName = profile.Name
		if madeFor(profile, node.UUID) && oneview.SameURI(profile.HardwareURI, h.URI) {
			s.Owner = UsedByIronic
		}
	}
	if binding.Shared() {
		s.Next = ActionFor(s.Owner, ironic.State(node.ProvisionState), maintenanceOf(node))
	}
	stays := s.Next == Return && (node.Retired || lacksTemplate(node, s.Owner, binding))
	if stays || node.Reservation != "" {
		s.Next = Leave
	}
}
