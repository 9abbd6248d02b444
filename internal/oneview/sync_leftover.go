package oneview

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/gophercloud/gophercloud/v2/openstack/baremetal/v1/nodes"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
)

// leftovers are the nodes whose hardware has a temporary profile that nobody uses any more. They also fill s.temps.
func (s *syncPass) leftovers(ctx context.Context) ([]*candidate, error) {
	s.temps = map[string]*Profile{}
	for _, purpose := range []Purpose{Cleaning, Inspecting} {
		begin, _, _ := strings.Cut(temporaryName(purpose, ""), "[")
		found, err := s.pool.OneView.ListProfiles(ctx, ProfileFilter{NamePrefix: begin})
		if err != nil {
			return nil, err
		}
		for i := range found {
			s.temps[normalURI(found[i].URI)] = &found[i]
		}
	}
	nodesByID, err := s.nodesOfTemporaries(ctx)
	if err != nil {
		return nil, err
	}
	var left []*candidate
	for _, profile := range s.temps {
		c := nodesByID[nodeOfTemporary(profile)]
		if c == nil || !temporaryFor(profile, c.node, c.binding) {
			continue // of another Ironic, at work, or nothing that a pass understands
		}
		if s.isLeftover(profile, c.node) {
			c.temporary = profile
			left = append(left, c)
		}
	}
	return left, nil
}

// nodesOfTemporaries are the listed nodes, and those at rest in other states in which an interrupted run can have left a
// node with a temporary profile; the latter are asked for only if there are such profiles.
func (s *syncPass) nodesOfTemporaries(ctx context.Context) (map[string]*candidate, error) {
	all := map[string]*candidate{}
	missing := false
	for id, c := range s.listed {
		all[id] = c
	}
	for _, profile := range s.temps {
		missing = missing || all[nodeOfTemporary(profile)] == nil
	}
	if !missing {
		return all, nil
	}
	for _, state := range []ironic.State{nodes.Enroll, nodes.InspectFail} {
		found, err := s.pool.Ironic.ListNodeFields(ctx, ironic.NodeFilter{ProvisionState: string(state)}, syncFields)
		if err != nil {
			return nil, fmt.Errorf("list nodes in state %q: %w", state, err)
		}
		for i := range found {
			if binding, err := BindingOf(&found[i]); err == nil && binding.Shared() {
				all[found[i].UUID] = &candidate{node: &found[i], binding: binding}
			}
		}
	}
	return all, nil
}

// isLeftover reports whether the use of a temporary profile is over: its node is at rest, and has come to its state after
// the profile was made, out of the cleaning or inspection that it was for. Elsewhere, as in manageable before a cleaning,
// only its age tells. One that is needed in this very pass, or that is on a node with an instance, is none.
func (s *syncPass) isLeftover(profile *Profile, node *ironic.Node) bool {
	state := ironic.State(node.ProvisionState)
	if ironic.Deployed(node) || node.Reservation != "" || profile.InProgress {
		return false
	}
	if state == nodes.Manageable && !node.Retired && Decide(UsedByIronic, state, maintenanceOf(node)) == Return {
		return false
	}
	over := state == nodes.Available || state == nodes.CleanFail || state == nodes.InspectFail
	if over && node.ProvisionUpdatedAt.After(profile.Created) {
		return true
	}
	return !profile.Created.IsZero() && time.Since(profile.Created) > s.o.LeftoverAge
}

// removeLeftover takes a temporary profile away, if it still is one: somebody may have begun to use it.
func (s *syncPass) removeLeftover(ctx context.Context, c *candidate) {
	err := s.stillLeftover(ctx, c)
	if err == nil && !s.o.DryRun {
		err = s.pool.Release(ctx, ReleaseOptions{NodeID: c.node.UUID, ProfileURI: c.temporary.URI, Limit: s.o.Limit})
	}
	if err != nil {
		s.findings.fail(ctx, c.node, "remove its temporary server profile "+c.temporary.Name, err)
		return
	}
	s.findings.tell(c.node, Changed, "nothing uses its temporary server profile "+c.temporary.Name+" any more: removed")
}

func (s *syncPass) stillLeftover(ctx context.Context, c *candidate) error {
	node, err := s.pool.Ironic.Node(ctx, c.node.UUID)
	if err != nil {
		return err
	}
	profile, err := s.pool.OneView.Profile(ctx, c.temporary.URI)
	if IsNotFound(err) || (err == nil && (!isTemporary(profile.Name, node.UUID) || !s.isLeftover(profile, node))) {
		return errOutdated
	}
	return err
}

// temporaryFor reports whether a profile is a temporary one that was made for a node, and is on its hardware.
func temporaryFor(profile *Profile, node *ironic.Node, binding Binding) bool {
	return isTemporary(profile.Name, node.UUID) && sameURI(profile.HardwareURI, binding.HardwareURI)
}

// nodeOfTemporary is the UUID in the name of a temporary profile, "Ironic Cleaning [UUID]"; "" if it is no such name.
func nodeOfTemporary(profile *Profile) string {
	_, id, _ := strings.Cut(profile.Name, "[")
	if id = strings.TrimSuffix(id, "]"); isTemporary(profile.Name, id) {
		return id
	}
	return ""
}
