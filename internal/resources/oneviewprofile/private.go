package oneviewprofile

import (
	"strings"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/oneview"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/oneview/sharing"
)

// private is what private state keeps of a profile: see framework.KeepPrivate.
type private struct {
	// Differences are those between the profile and its template, for the warnings of the next plan.
	Differences string `json:"differences,omitzero"`
}

func (p *private) compare(profile *oneview.Profile, h sharing.Holding) {
	p.Differences = ""
	if h.Profile != nil && oneview.SameURI(h.Profile.URI, profile.URI) {
		p.Differences = strings.Join(h.Differences, "; ")
	}
}

// said returns a sentence with the differences that were noted; "" if none.
func (p private) said() string {
	if p.Differences == "" {
		return ""
	}
	return " It differs from the template: " + strings.TrimSuffix(p.Differences, ".") + "."
}
