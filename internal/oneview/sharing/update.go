package sharing

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/states"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/oneview"
)

// UpdateOptions describes a change of a node's profile.
type UpdateOptions struct {
	NodeID     string
	ProfileURI string
	Name       string // empty: unchanged
	// TemplateURI is the template to link and apply; empty: unchanged.
	TemplateURI string
	Reapply     bool          // update the profile from the template that it is linked to
	Limit       time.Duration // zero: DefaultLimit
}

// Update changes the profile of a node in place. It switches the server off if the change requires that; while the node may run a
// deployment it returns an error of KindOccupied instead. It skips changes that the profile has already.
func (p *Pool) Update(ctx context.Context, o UpdateOptions) (*Applied, error) {
	o.Limit = cmp.Or(o.Limit, DefaultLimit)
	node, err := p.Site.Ironic.Node(ctx, o.NodeID)
	if err != nil {
		return nil, err
	}
	b, err := BindingOf(node)
	if err != nil {
		return nil, err
	}
	change := revision{profileURI: o.ProfileURI, name: o.Name, templateURI: o.TemplateURI, comply: o.Reapply || o.TemplateURI != ""}
	if _, err := p.revise(ctx, node, b, change, time.Now().Add(o.Limit)); err != nil {
		return nil, err
	}
	h, err := p.holding(ctx, node, b)
	if err != nil {
		return nil, err
	}
	return &Applied{Profile: h.Profile, Hardware: h.Hardware, Reused: true}, nil
}

// revision is a change of a profile; empty fields change nothing.
type revision struct {
	profileURI        string
	name, templateURI string
	comply            bool // and apply the template
}

// revise changes a profile step by step. Before each step it checks who uses the hardware.
func (p *Pool) revise(ctx context.Context, node *ironic.Node, b Binding, change revision, deadline time.Time) (*oneview.Profile, error) {
	tries := newRetries(p.OneView, "changing server profile "+change.profileURI, deadline)
	complied := false
	for refused := ""; ; {
		h, err := p.holding(ctx, node, b)
		if err != nil {
			return nil, err
		}
		if h.Profile == nil || !h.ours() || !oneview.SameURI(h.Profile.URI, change.profileURI) {
			return nil, p.notOurs(node, b, h, change.profileURI)
		}
		profile := h.Profile
		match := profile.ETag
		if match == "" || match == refused {
			match = "*" // see remove
		}
		switch edits := change.edits(profile); {
		case profile.InProgress || h.Hardware.Settling():
		case !edits && (!change.comply || complied || profile.Compliance != oneview.NonCompliant):
			return profile, nil
		case tries.holds():
		case edits:
			err = tries.sent(p.edit(ctx, node, h, change, match, deadline))
		default:
			err = tries.sent(p.reapply(ctx, node, h, match, deadline))
			complied = err == nil
		}
		if oneview.IsStatus(err, http.StatusPreconditionFailed) && match != "*" {
			refused, err = match, nil
		}
		if err := tries.again(ctx, err); err != nil {
			return nil, fmt.Errorf("node %s: change server profile %s: %w", ironic.NodeLabel(node), oneview.ProfileLabel(profile), err)
		}
	}
}

// notOurs returns the error for a profile that Ironic does not use, or not any more.
func (p *Pool) notOurs(node *ironic.Node, b Binding, h Holding, profileURI string) error {
	if h.Ownership == UsedByOneView && !h.Unfinished {
		return h.inUse(node, b)
	}
	return fmt.Errorf("node %s: server profile %s is not the one on its server hardware %s. Nothing was changed",
		ironic.NodeLabel(node), profileURI, oneview.HardwareLabel(h.Hardware))
}

// edits reports whether the profile itself must be written.
func (change revision) edits(profile *oneview.Profile) bool {
	return (change.name != "" && change.name != profile.Name) ||
		(change.templateURI != "" && !oneview.SameURI(change.templateURI, profile.TemplateURI))
}

// edit writes a profile with another name or template link. That does not require the server to be off.
func (p *Pool) edit(ctx context.Context, node *ironic.Node, h Holding, change revision, match string, deadline time.Time) error {
	document := maps.Clone(h.Profile.Document)
	if change.name != "" && change.name != h.Profile.Name {
		if strings.ContainsAny(change.name, `'"`) {
			return fmt.Errorf("the name %s must have no quotes", change.name)
		}
		named, err := p.OneView.ListProfiles(ctx, oneview.ProfileFilter{Name: change.name})
		if err != nil {
			return err
		}
		for i := range named {
			if !oneview.SameURI(named[i].URI, h.Profile.URI) {
				return nameTaken(node, &named[i])
			}
		}
		document.Set("name", change.name)
		document.Set("description", withMark(h.Profile.Description, h.Profile.Name, change.name, node.UUID))
	}
	if change.templateURI != "" && !oneview.SameURI(change.templateURI, h.Profile.TemplateURI) {
		template, err := p.OneView.Template(ctx, change.templateURI)
		if err != nil {
			return err
		}
		if reasons := misfits(template, h.Hardware); len(reasons) > 0 {
			return mismatch(node, h.Hardware, reasons)
		}
		document.Set("serverProfileTemplateUri", template.URI)
	}
	return finish(ctx, p.OneView, deadline, func() (string, error) { return p.OneView.PutProfile(ctx, h.Profile.URI, document, match) })
}

// reapply updates a profile from its template. The appliance says whether that requires the server to be off.
func (p *Pool) reapply(ctx context.Context, node *ironic.Node, h Holding, match string, deadline time.Time) error {
	needs, err := p.OneView.CompliancePreview(ctx, h.Profile.URI)
	if err != nil {
		return err
	}
	if !needs.IsOnlineUpdate && h.Hardware.PowerState != oneview.PowerOff {
		if !states.Parked(ironic.State(node.ProvisionState)) {
			return occupied(node, "server profile "+oneview.ProfileLabel(h.Profile)+" must be updated from its template")
		}
		if err := p.stop(ctx, h.Hardware.URI, h.Profile.URI, deadline); err != nil {
			return err
		}
	}
	return finish(ctx, p.OneView, deadline, func() (string, error) { return p.OneView.Comply(ctx, h.Profile.URI, match) })
}
