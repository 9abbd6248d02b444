// Package sharing shares server hardware between Ironic and other users of OneView: prepare, release, sync, migrate.
package sharing

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/rest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/oneview"
)

// Pool is server hardware that Ironic and other users of an appliance share.
type Pool struct {
	OneView *oneview.Client
	Site    *machine.Site // the pool is its guard
}

// New returns a site and the pool of hardware that it shares with an appliance. The pool guards the site. Without an appliance, the
// pool is nil, and NotConfigured guards the site. New makes no request.
func New(cfg machine.Config, appliance *oneview.Client) (*machine.Site, *Pool) {
	if appliance == nil {
		cfg.Guard = NotConfigured{}
		return machine.New(cfg), nil
	}
	pool := &Pool{OneView: appliance}
	cfg.Guard = pool
	pool.Site = machine.New(cfg)
	return pool.Site, pool
}

// Holding is the user of a node's hardware, and the profile on it, at one moment.
type Holding struct {
	Ownership Ownership
	Hardware  *oneview.Hardware
	Profile   *oneview.Profile // applied to the hardware; nil: none

	// Stale: the node names an applied profile, but the hardware is free.
	Stale bool
	// Unfinished: Owner says that OneView uses the hardware, but its profile has our mark for this node and hardware. A run was
	// interrupted before it could write driver_info, or will do so soon. The next Prepare or Release finishes its work.
	Unfinished bool

	// Compliance of the profile with the template that it is linked to, as the appliance reports it.
	Compliance oneview.Compliance
	// Differences from that template: the changes that the appliance would make, as it describes them. For a profile that is not
	// linked, the parts that differ from the node's template, as far as this package can compare them.
	Differences []string
}

// ours reports whether the profile on the hardware is Ironic's.
func (h Holding) ours() bool { return h.Ownership == UsedByIronic || h.Unfinished }

// Inspect returns who uses the hardware of a node, and whether its profile still complies with the template.
func (p *Pool) Inspect(ctx context.Context, node *ironic.Node) (Holding, error) {
	b, err := BindingOf(node)
	if err != nil {
		return Holding{}, err
	}
	h, err := p.holding(ctx, node, b)
	if err != nil || h.Profile == nil {
		return h, err
	}
	if h.Compliance = h.Profile.Compliance; h.Compliance == oneview.Compliant || !h.ours() {
		return h, nil // another user's profile need not comply with our template
	}
	h.Differences, err = p.differences(ctx, h.Profile, b.TemplateURI)
	return h, err
}

// holding reads the hardware of a node and the profile on it, and applies the rule of ownership.
func (p *Pool) holding(ctx context.Context, node *ironic.Node, b Binding) (Holding, error) {
	if b.HardwareURI == "" {
		return Holding{}, fmt.Errorf("node %s: driver_info.%s is missing. Set it to the URI of the node's server hardware in OneView",
			ironic.NodeLabel(node), keyHardware)
	}
	waiting := p.OneView.Backoff()
	for try := 1; ; try++ {
		hardware, err := p.OneView.Hardware(ctx, b.HardwareURI)
		if err != nil {
			return Holding{}, fmt.Errorf("node %s: %w", ironic.NodeLabel(node), err)
		}
		h := Holding{Hardware: hardware, Ownership: Owner(hardware.ProfileURI, b.AppliedURI), Compliance: oneview.ComplianceUnknown}
		if h.Ownership == Free {
			h.Stale = b.AppliedURI != ""
			return h, nil
		}
		h.Profile, err = p.OneView.Profile(ctx, hardware.ProfileURI)
		if oneview.IsNotFound(err) && try < 4 { // it was deleted after the hardware was read
			if err := rest.Sleep(ctx, waiting.Next()); err != nil {
				return Holding{}, err
			}
			continue
		}
		if err != nil {
			return h, fmt.Errorf("node %s: %w", ironic.NodeLabel(node), err)
		}
		h.Unfinished = h.Ownership == UsedByOneView && madeFor(h.Profile, node.UUID) && oneview.SameURI(h.Profile.HardwareURI, hardware.URI)
		return h, nil
	}
}

// CheckUsable returns an error of KindInUse if OneView uses the hardware of a node. It returns nil if the hardware is free or used by
// Ironic, or if the node is pre-allocated or not in OneView.
func (p *Pool) CheckUsable(ctx context.Context, node *ironic.Node) error {
	_, err := p.usedBy(ctx, node)
	return err
}

// usedBy is CheckUsable that also returns who uses the hardware; empty if the rules of ownership do not apply to the node.
func (p *Pool) usedBy(ctx context.Context, node *ironic.Node) (Ownership, error) {
	b, err := BindingOf(node)
	if err != nil || !b.Shared() {
		return "", err
	}
	h, err := p.holding(ctx, node, b)
	var refused *oneview.StatusError
	if err != nil && (h.Ownership != UsedByOneView || !errors.As(err, &refused)) {
		return "", err
	}
	if h.Ownership == UsedByOneView && !h.Unfinished {
		return "", h.inUse(node, b) // even if the user may not read its profile
	}
	return h.Ownership, nil
}

// announce writes the applied profile into a node's driver_info, and dynamic_allocation, if that is not set.
func (p *Pool) announce(ctx context.Context, node *ironic.Node, profileURI string) (*ironic.Node, error) {
	var patch ironic.Patch
	if applied, _ := node.DriverInfo[keyApplied].(string); applied != profileURI {
		patch.Set("/driver_info/"+keyApplied, profileURI)
	}
	if _, declared := node.DriverInfo[keyDynamic]; !declared {
		patch.Set("/driver_info/"+keyDynamic, true)
	}
	if len(patch) == 0 {
		return node, nil
	}
	now, err := p.Site.PatchNode(ctx, node.UUID, patch)
	if err != nil {
		return node, fmt.Errorf("node %s: write driver_info.%s: %w", ironic.NodeLabel(node), keyApplied, err)
	}
	return now, nil
}

// retract removes what announce has written, if the node still names one of these profiles. It returns nil if the node does not
// exist.
func (p *Pool) retract(ctx context.Context, nodeID string, profileURIs ...string) error {
	node, err := p.Site.Ironic.Node(ctx, nodeID)
	if api.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	applied, _ := node.DriverInfo[keyApplied].(string)
	for _, uri := range profileURIs {
		if !oneview.SameURI(applied, uri) {
			continue
		}
		var patch ironic.Patch
		patch.Remove("/driver_info/" + keyApplied)
		if _, err := p.Site.PatchNode(ctx, nodeID, patch); err != nil && !api.IsNotFound(err) {
			return fmt.Errorf("node %s: remove driver_info.%s: %w", ironic.NodeLabel(node), keyApplied, err)
		}
		return nil
	}
	return nil
}

// differences returns the differences between a profile and its template. For a linked profile the appliance returns them as text.
// Profiles of Ironic's former driver are not linked: differences compares them with a new profile of the template.
func (p *Pool) differences(ctx context.Context, profile *oneview.Profile, templateURI string) ([]string, error) {
	var refused *oneview.StatusError
	if profile.TemplateURI != "" {
		if profile.Compliance != oneview.NonCompliant {
			return nil, nil
		}
		found, err := p.OneView.CompliancePreview(ctx, profile.URI)
		if errors.As(err, &refused) {
			return nil, nil // the appliance says that there are differences, but does not list them
		}
		return slices.Concat(found.AutomaticUpdates, found.ManualUpdates), err
	}
	if templateURI == "" {
		return nil, nil
	}
	wanted, err := p.OneView.NewProfile(ctx, templateURI)
	if errors.As(err, &refused) {
		return nil, nil // the template does not exist any more
	}
	if err != nil {
		return nil, err
	}
	var found []string
	for _, key := range compared() {
		if !holds(decoded(profile.Document[key]), decoded(wanted[key])) {
			found = append(found, key)
		}
	}
	return found, nil
}

// compared are the parts of a profile that a template alone determines. Storage is not one of them, because the appliance fills
// in most of it.
func compared() []string {
	return []string{
		"serverHardwareTypeUri", "enclosureGroupUri", "macType", "wwnType", "serialNumberType", "hideUnusedFlexNics",
		"connections", "connectionSettings", "boot", "bootMode", "bios", "firmware",
	}
}

func decoded(raw json.RawMessage) any {
	var value any
	_ = json.Unmarshal(raw, &value) // a missing part counts as null
	return value
}

// holds reports whether a profile has all the wanted values. It ignores values that the appliance has filled in, and the settings
// of the compliance check.
func holds(have, wanted any) bool {
	switch wanted := wanted.(type) {
	case nil:
		return true
	case map[string]any:
		have, ok := have.(map[string]any)
		if !ok {
			return false
		}
		for _, key := range slices.Sorted(maps.Keys(wanted)) {
			if key != "complianceControl" && key != "reapplyState" && !holds(have[key], wanted[key]) {
				return false
			}
		}
		return true
	case []any:
		have, ok := have.([]any)
		return ok && slices.EqualFunc(have, wanted, holds)
	case string:
		text, ok := have.(string)
		return ok && (text == wanted || oneview.SameURI(text, wanted)) || (have == nil && wanted == "")
	}
	return reflect.DeepEqual(have, wanted)
}
