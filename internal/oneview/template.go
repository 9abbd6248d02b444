package oneview

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
)

// Template is a server profile template.
type Template struct {
	URI             string
	Name            string
	Description     string
	HardwareTypeURI string // the only type of server hardware that it fits
	GroupURI        string // the only enclosure group that it fits; empty: rack servers
	MACType         string // Physical, Virtual or UserDefined
	ManageBoot      bool   // its profiles set the order of boot devices
	Status          string // OK, Warning, Critical, Disabled, Unknown
	ETag            string
}

// TemplateFilter selects server profile templates; empty fields do not select.
type TemplateFilter struct {
	Name, HardwareTypeURI, GroupURI string
}

// TemplateLabel is how messages call a server profile template: by its name, with the URI.
func TemplateLabel(t *Template) string { return t.Name + " (" + t.URI + ")" }

// UnmarshalJSON reads the appliance's representation; what it has as null is zero.
func (t *Template) UnmarshalJSON(content []byte) error {
	var from struct {
		URI                   string `json:"uri"`
		Name                  string `json:"name"`
		Description           string `json:"description"`
		ServerHardwareTypeURI string `json:"serverHardwareTypeUri"`
		EnclosureGroupURI     string `json:"enclosureGroupUri"`
		MACType               string `json:"macType"`
		Status                string `json:"status"`
		ETag                  string `json:"eTag"`
		Boot                  struct {
			ManageBoot bool `json:"manageBoot"`
		} `json:"boot"`
	}
	if err := json.Unmarshal(content, &from); err != nil {
		return err
	}
	*t = Template{
		URI: templateCollection.canonical(from.URI), Name: from.Name, Description: from.Description, HardwareTypeURI: from.ServerHardwareTypeURI,
		GroupURI: from.EnclosureGroupURI, MACType: from.MACType, ManageBoot: from.Boot.ManageBoot, Status: from.Status, ETag: from.ETag,
	}
	return nil
}

// Template returns a server profile template by its URI.
func (c *Client) Template(ctx context.Context, uri string) (*Template, error) {
	path, err := templateCollection.path(uri)
	if err != nil {
		return nil, fmt.Errorf("server profile template: %w", err)
	}
	var t Template
	if err := c.get(ctx, path, nil, &t); err != nil {
		return nil, fmt.Errorf("server profile template %s: %w", path, err)
	}
	return &t, nil
}

// ListTemplates returns the server profile templates that a filter selects.
func (c *Client) ListTemplates(ctx context.Context, filter TemplateFilter) ([]Template, error) {
	filters := slices.Concat(equals("name", filter.Name), equals("serverHardwareTypeUri", filter.HardwareTypeURI), equals("enclosureGroupUri", filter.GroupURI))
	all, err := list[Template](ctx, c, templateCollection, filters)
	if err != nil {
		return nil, err
	}
	return kept(all, func(t *Template) bool {
		return fits(t.Name, filter.Name) && fitsURI(t.HardwareTypeURI, filter.HardwareTypeURI) && fitsURI(t.GroupURI, filter.GroupURI)
	}), nil
}

// newProfile asks the appliance for a profile as a template wants it. It is not saved anywhere, and what is in it is the
// appliance's business: it goes back as it came.
func (c *Client) newProfile(ctx context.Context, templateURI string) (document, error) {
	path, err := templateCollection.path(templateURI)
	if err != nil {
		return nil, fmt.Errorf("server profile template: %w", err)
	}
	var draft document
	if err := c.get(ctx, path+"/new-profile", nil, &draft); err != nil {
		return nil, fmt.Errorf("new profile from template %s: %w", path, err)
	}
	return draft, nil
}
