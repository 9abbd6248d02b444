package sharing

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/gophercloud/gophercloud/v2/openstack/baremetal/v1/nodes"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/clock"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/states"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/oneview"
)

// leftovers returns the nodes whose hardware has an unused temporary profile. It also fills s.temps.
func (s *syncPass) leftovers(ctx context.Context) ([]*candidate, error) {
	s.temps = map[string]*oneview.Profile{}
	found, err := ListTemporaries(ctx, s.pool.OneView)
	if err != nil {
		return nil, err
	}
	for i := range found {
		s.temps[oneview.URIKey(found[i].URI)] = &found[i]
	}
	nodesByID, err := s.nodesOfTemporaries(ctx)
	if err != nil {
		return nil, err
	}
	var left []*candidate
	for _, profile := range s.temps {
		c := nodesByID[NodeOfTemporary(profile)]
		if c == nil || !temporaryFor(profile, c.node, c.binding) {
			continue // of another Ironic, in progress, or unknown
		}
		if s.isLeftover(profile, c.node) {
			c.temporary = profile
			left = append(left, c)
		}
	}
	return left, nil
}

// nodesOfTemporaries returns the listed nodes, and the nodes in other states in which an interrupted run may have left a temporary
// profile. It requests the latter only if such profiles exist.
func (s *syncPass) nodesOfTemporaries(ctx context.Context) (map[string]*candidate, error) {
	all := map[string]*candidate{}
	missing := false
	maps.Copy(all, s.listed)
	for _, profile := range s.temps {
		missing = missing || all[NodeOfTemporary(profile)] == nil
	}
	if !missing {
		return all, nil
	}
	for _, state := range []ironic.State{nodes.Enroll, nodes.InspectFail} {
		found, err := s.pool.Site.Ironic.ListNodeFields(ctx, ironic.NodeFilter{ProvisionState: string(state)}, syncFields)
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

// isLeftover reports whether a temporary profile is unused: the cleaning or inspection of its node has ended after the profile was
// created. In other states, such as manageable before a cleaning, only the profile's age decides. A profile that this pass needs, or
// that is on a node with an instance, is in use.
func (s *syncPass) isLeftover(profile *oneview.Profile, node *ironic.Node) bool {
	state := ironic.State(node.ProvisionState)
	if states.Deployed(node) || node.Reservation != "" || profile.InProgress {
		return false
	}
	if state == nodes.Manageable && !node.Retired && actionFor(UsedByIronic, state, maintenanceOf(node)) == Return {
		return false
	}
	over := state == nodes.Available || state == nodes.CleanFail || state == nodes.InspectFail
	if over && node.ProvisionUpdatedAt.After(profile.Created) {
		return true
	}
	return clock.IsOld(profile.Created, time.Now(), s.o.LeftoverAge)
}

// removeLeftover removes a temporary profile, if it is still unused.
func (s *syncPass) removeLeftover(ctx context.Context, c *candidate) {
	err := s.stillLeftover(ctx, c)
	if err == nil && !s.o.DryRun {
		err = s.pool.Release(ctx, ReleaseOptions{NodeID: c.node.UUID, ProfileURI: c.temporary.URI, Limit: s.o.Limit})
	}
	if err != nil {
		s.findings.fail(ctx, c.node, "remove its temporary server profile "+c.temporary.Name, err)
		return
	}
	s.findings.tell(c.node, Changed, "removed its unused temporary server profile "+c.temporary.Name)
}

func (s *syncPass) stillLeftover(ctx context.Context, c *candidate) error {
	node, err := s.pool.Site.Ironic.Node(ctx, c.node.UUID)
	if err != nil {
		return err
	}
	profile, err := s.pool.OneView.Profile(ctx, c.temporary.URI)
	if oneview.IsNotFound(err) || (err == nil && (!isTemporary(profile.Name, node.UUID) || !s.isLeftover(profile, node))) {
		return errOutdated
	}
	return err
}

// temporaryFor reports whether a profile is a temporary one that was made for a node, and is on its hardware.
func temporaryFor(profile *oneview.Profile, node *ironic.Node, binding Binding) bool {
	return isTemporary(profile.Name, node.UUID) && oneview.SameURI(profile.HardwareURI, binding.HardwareURI)
}

// ListTemporaries lists the temporary profiles on an appliance, also those of other Ironics.
func ListTemporaries(ctx context.Context, appliance *oneview.Client) (all []oneview.Profile, err error) {
	for _, purpose := range []Purpose{Cleaning, Inspecting} {
		begin, _, _ := strings.Cut(temporaryName(purpose, ""), "[")
		found, err := appliance.ListProfiles(ctx, oneview.ProfileFilter{NamePrefix: begin})
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, nil
}

// NodeOfTemporary returns the UUID in the name of a temporary profile, "Ironic Cleaning [UUID]"; "" for other names.
func NodeOfTemporary(profile *oneview.Profile) string {
	_, id, _ := strings.Cut(profile.Name, "[")
	if id = strings.TrimSuffix(id, "]"); isTemporary(profile.Name, id) {
		return id
	}
	return ""
}
