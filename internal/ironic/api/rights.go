package api

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/tokens"
)

// Project returns the ID of the project that Keystone has authenticated the client for: Ironic makes it the owner of what its users create.
// It is empty without Keystone, with another scope, and before the first request.
func (c *Conn) Project() string {
	service := c.connected()
	if service == nil || service.ProviderClient == nil {
		return ""
	}
	result, ok := service.GetAuthResult().(interface {
		ExtractProject() (*tokens.Project, error)
	})
	if !ok {
		return ""
	}
	project, err := result.ExtractProject()
	if err != nil || project == nil {
		return ""
	}
	return project.ID
}

// Rights are what Keystone says of a user. Ironic hides objects from users without rights: see IsNotFound.
type Rights struct {
	Project string   `json:"project,omitempty"` // ID; empty with another scope, which shows all projects
	Roles   []string `json:"roles"`             // names, sorted
	System  bool     `json:"-"`                 // the token has the scope of the system
}

// String names scope and roles.
func (r Rights) String() string {
	scope := "project " + r.Project
	if r.Project == "" {
		scope = "the scope of all projects"
	}
	return fmt.Sprintf("%s and the roles %s", scope, strings.Join(r.Roles, ", "))
}

// Covers reports whether a user with these rights sees all that one with the other rights sees, as far as Ironic's default policy goes.
func (r Rights) Covers(other Rights) bool {
	lacks := func(role string) bool { return !slices.Contains(r.Roles, role) }
	return (r.Project == "" || r.Project == other.Project) && !slices.ContainsFunc(other.Roles, lacks)
}

// Rights returns the rights of the present token; nil without Keystone, and before the first request.
func (c *Conn) Rights() *Rights {
	service := c.connected()
	if service == nil || service.ProviderClient == nil {
		return nil
	}
	result, ok := service.GetAuthResult().(interface {
		ExtractRoles() ([]tokens.Role, error)
		ExtractInto(v any) error
	})
	if !ok {
		return nil
	}
	roles, err := result.ExtractRoles()
	if err != nil {
		return nil
	}
	var scope struct {
		System map[string]bool `json:"system"`
	}
	if err := result.ExtractInto(&scope); err != nil {
		return nil
	}
	rights := &Rights{Project: c.Project(), System: scope.System["all"]}
	for _, role := range roles {
		rights.Roles = append(rights.Roles, role.Name)
	}
	slices.Sort(rights.Roles)
	return rights
}

// Identity is whom Keystone has authenticated, and what its service catalog says of Ironic.
type Identity struct {
	User, UserDomain           string
	ProjectName, ProjectDomain string // empty with another scope
	Rights
	Expires time.Time // of the token
	Place   string    // where in the catalog Ironic's URL is, such as "region north, interface public"; empty: the URL is configured
}

// Identity returns whom Keystone has authenticated; nil without Keystone, and before the first request.
func (c *Conn) Identity() *Identity {
	rights := c.Rights()
	if rights == nil {
		return nil
	}
	who := &Identity{Rights: *rights, Place: c.keystone.found}
	type named struct {
		Name   string
		Domain struct{ Name string }
	}
	var token struct {
		User, Project named
		ExpiresAt     time.Time `json:"expires_at"`
	}
	result, _ := c.connected().GetAuthResult().(interface{ ExtractInto(v any) error }) // as in Rights
	if result.ExtractInto(&token) != nil {
		return who
	}
	who.User, who.UserDomain, who.Expires = token.User.Name, token.User.Domain.Name, token.ExpiresAt
	who.ProjectName, who.ProjectDomain = token.Project.Name, token.Project.Domain.Name
	return who
}
