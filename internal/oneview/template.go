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
	HardwareTypeURI string // the only type of server hardware to which it can be applied
	GroupURI        string // the only enclosure group to which it can be applied; empty: rack servers
	MACType         string // Physical, Virtual or UserDefined
	ManageBoot      bool   // its profiles manage the boot order
	Status          string // OK, Warning, Critical, Disabled, Unknown
	ETag            string
}

// TemplateFilter selects server profile templates. An empty field selects all.
type TemplateFilter struct {
	Name, HardwareTypeURI, GroupURI string
}

// TemplateLabel returns the name and URI of a server profile template for messages.
func TemplateLabel(t *Template) string { return t.Name + " (" + t.URI + ")" }

// UnmarshalJSON decodes the appliance's JSON. A null becomes the zero value.
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
		URI: templateCollection.canonical(from.URI), Name: from.Name, Description: from.Description,
		HardwareTypeURI: from.ServerHardwareTypeURI,
		GroupURI:        from.EnclosureGroupURI, MACType: from.MACType, ManageBoot: from.Boot.ManageBoot, Status: from.Status,
		ETag: from.ETag,
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
	filters := slices.Concat(equals("name", filter.Name), equals("serverHardwareTypeUri", filter.HardwareTypeURI),
		equals("enclosureGroupUri", filter.GroupURI))
	all, err := list[Template](ctx, c, templateCollection, filters)
	if err != nil {
		return nil, err
	}
	return kept(all, func(t *Template) bool {
		return fits(t.Name, filter.Name) && fitsURI(t.HardwareTypeURI, filter.HardwareTypeURI) && fitsURI(t.GroupURI, filter.GroupURI)
	}), nil
}

// NewProfile returns the profile that a template defines. The appliance does not save it; callers send it back to create it.
func (c *Client) NewProfile(ctx context.Context, templateURI string) (Document, error) {
	path, err := templateCollection.path(templateURI)
	if err != nil {
		return nil, fmt.Errorf("server profile template: %w", err)
	}
	var draft Document
	if err := c.get(ctx, path+"/new-profile", nil, &draft); err != nil {
		return nil, fmt.Errorf("new profile from template %s: %w", path, err)
	}
	return draft, nil
}
