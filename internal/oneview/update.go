package oneview

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
)

// UpdateOptions says what shall become of the profile that a node has.
type UpdateOptions struct {
	NodeID     string
	ProfileURI string
	Name       string // empty: as it is
	// TemplateURI is the template that the profile shall be linked to and comply with; empty: as it is.
	TemplateURI string
	Reapply     bool          // bring the profile in line with the template that it is linked to
	Limit       time.Duration // zero: DefaultLimit
}

// Update changes the profile of a node in place. If the hardware has to be off for that, it is switched off, which is an
// OccupiedError while something may run on the node. What is so already is not done again.
func (p *Pool) Update(ctx context.Context, o UpdateOptions) (*Applied, error) {
	if o.Limit == 0 {
		o.Limit = DefaultLimit
	}
	node, err := p.Ironic.Node(ctx, o.NodeID)
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

// revision is a change of a profile; empty fields leave things as they are.
type revision struct {
	profileURI        string
	name, templateURI string
	comply            bool // and apply the template
}

// revise changes a profile step by step, looking before each whose the hardware is.
func (p *Pool) revise(ctx context.Context, node *ironic.Node, b Binding, change revision, deadline time.Time) (*Profile, error) {
	tries := p.OneView.stamina("changing server profile "+change.profileURI, deadline)
	complied := false
	for refused := ""; ; {
		h, err := p.holding(ctx, node, b)
		if err != nil {
			return nil, err
		}
		if h.Profile == nil || !h.ours() || !sameURI(h.Profile.URI, change.profileURI) {
			return nil, p.notOurs(node, b, h, change.profileURI)
		}
		profile := h.Profile
		match := profile.ETag
		if match == "" || match == refused {
			match = "*" // see remove
		}
		switch {
		case profile.InProgress || h.Hardware.settling():
		case change.edits(profile):
			err = p.edit(ctx, node, h, change, match, deadline)
		case change.comply && !complied && profile.Compliance == NonCompliant:
			err = p.reapply(ctx, node, h, match, deadline)
			complied = err == nil
		default:
			return profile, nil
		}
		if isStatus(err, http.StatusPreconditionFailed) && match != "*" {
			refused, err = match, nil
		}
		if err := tries.again(ctx, err); err != nil {
			return nil, fmt.Errorf("node %s: change server profile %s: %w", ironic.NodeLabel(node), ProfileLabel(profile), err)
		}
	}
}

// notOurs is the refusal to change a profile that is not, or not any more, the one that Ironic uses.
func (p *Pool) notOurs(node *ironic.Node, b Binding, h Holding, profileURI string) error {
	if h.Ownership == UsedByOneView && !h.Unfinished {
		return h.inUse(node, b)
	}
	return fmt.Errorf("node %s: server profile %s is not the one on its server hardware %s: nothing was changed",
		ironic.NodeLabel(node), profileURI, HardwareLabel(h.Hardware))
}

// edits reports whether the profile has to be written anew.
func (change revision) edits(profile *Profile) bool {
	return (change.name != "" && change.name != profile.Name) || (change.templateURI != "" && !sameURI(change.templateURI, profile.TemplateURI))
}

// edit writes a profile anew, with another name or linked to another template. Nothing of that needs the server to be off.
func (p *Pool) edit(ctx context.Context, node *ironic.Node, h Holding, change revision, match string, deadline time.Time) error {
	document := maps.Clone(h.Profile.document)
	if change.name != "" && change.name != h.Profile.Name {
		if strings.ContainsAny(change.name, `'"`) {
			return fmt.Errorf("the name %s must have no quotes", change.name)
		}
		named, err := p.OneView.ListProfiles(ctx, ProfileFilter{Name: change.name})
		if err != nil {
			return err
		}
		for i := range named {
			if !sameURI(named[i].URI, h.Profile.URI) {
				return &NameTakenError{Node: ironic.NodeLabel(node), Profile: &named[i]}
			}
		}
		document.set("name", change.name)
		document.set("description", marked(h.Profile.Description, h.Profile.Name, change.name, node.UUID))
	}
	if change.templateURI != "" && !sameURI(change.templateURI, h.Profile.TemplateURI) {
		template, err := p.OneView.Template(ctx, change.templateURI)
		if err != nil {
			return err
		}
		if reasons := misfits(template, h.Hardware); len(reasons) > 0 {
			return &MismatchError{Node: ironic.NodeLabel(node), Hardware: h.Hardware, Reasons: reasons}
		}
		document.set("serverProfileTemplateUri", template.URI)
	}
	return p.OneView.finish(ctx, deadline, func() (string, error) { return p.OneView.putProfile(ctx, h.Profile.URI, document, match) })
}

// reapply brings a profile in line with its template. The appliance says whether the server has to be off for that.
func (p *Pool) reapply(ctx context.Context, node *ironic.Node, h Holding, match string, deadline time.Time) error {
	needs, err := p.OneView.compliancePreview(ctx, h.Profile.URI)
	if err != nil {
		return err
	}
	if !needs.IsOnlineUpdate && h.Hardware.PowerState != PowerOff {
		if !ironic.Parked(ironic.State(node.ProvisionState)) {
			return &OccupiedError{Node: node, Reason: "server profile " + ProfileLabel(h.Profile) + " has to be brought in line with its template"}
		}
		if err := p.stop(ctx, h.Hardware.URI, h.Profile.URI, deadline); err != nil {
			return err
		}
	}
	return p.OneView.finish(ctx, deadline, func() (string, error) { return p.OneView.comply(ctx, h.Profile.URI, match) })
}
