package fakekeystone

import "slices"

// Domain holds users and projects.
type Domain struct{ ID, Name string }

// Project is a project, which is also called tenant.
type Project struct{ ID, Name, DomainID string }

// User is a user with a password.
type User struct {
	ID, Name, DomainID, Password string

	DefaultProjectID string              // of tokens for which no scope was asked; empty: such tokens are unscoped
	System           []string            // names of the roles on the system
	Projects         map[string][]string // names of the roles on projects, by the project's ID
	Domains          map[string][]string // names of the roles on domains, by the domain's ID
}

// Credential is an application credential: it stands for a user in one project.
type Credential struct{ ID, Name, UserID, ProjectID, Secret string }

// Service is an entry of the service catalog.
type Service struct {
	Type, Name string
	Endpoints  []Endpoint
}

// Endpoint is an address of a service.
type Endpoint struct{ Region, Interface, URL string }

// Password is the password of all users of NewSite, and the secret of its application credential.
const Password = "fake-keystone-password-7Q"

// NewSite returns a Keystone with the domain Default and the projects tenant-a and tenant-b. Project tenant-a has the users a-admin,
// a-manager, a-member and a-reader, each with that role and those that it implies; tenant-b likewise. The users sys-admin, sys-member and
// sys-reader have roles on the system. An ID is the name and "-id". The application credential a-member-app stands for a-member in
// tenant-a. The catalog has an Ironic with all interfaces in the region north.
func NewSite(ironic string) *Server {
	s := &Server{Domains: []Domain{{"default", "Default"}}}
	implied := map[string][]string{
		"admin": {"admin", "manager", "member", "reader"}, "manager": {"manager", "member", "reader"}, "member": {"member", "reader"},
		"reader": {"reader"},
	}
	user := func(name string) User {
		return User{ID: name + "-id", Name: name, DomainID: "default", Password: Password}
	}
	for _, tenant := range []string{"a", "b"} {
		project := Project{ID: "tenant-" + tenant + "-id", Name: "tenant-" + tenant, DomainID: "default"}
		s.Projects = append(s.Projects, project)
		for _, role := range []string{"admin", "manager", "member", "reader"} {
			u := user(tenant + "-" + role)
			u.Projects = map[string][]string{project.ID: implied[role]}
			s.Users = append(s.Users, u)
		}
	}
	for _, role := range []string{"admin", "member", "reader"} {
		u := user("sys-" + role)
		u.System = implied[role]
		s.Users = append(s.Users, u)
	}
	s.Credentials = []Credential{{
		ID: "a-member-app-id", Name: "a-member-app", UserID: "a-member-id", ProjectID: "tenant-a-id",
		Secret: Password,
	}}
	s.Catalog = []Service{{Type: "baremetal", Name: "ironic", Endpoints: []Endpoint{
		{"north", "public", ironic}, {"north", "internal", ironic}, {"north", "admin", ironic},
	}}}
	return s
}

func found[T any](all []T, is func(T) bool) *T {
	at := slices.IndexFunc(all, is)
	if at < 0 {
		return nil
	}
	return &all[at]
}

// domain returns the domain with an ID, or with a name.
func (s *Server) domain(of *domainRef) *Domain {
	if of == nil {
		return nil
	}
	return found(s.Domains, func(d Domain) bool { return of.ID != "" && d.ID == of.ID || of.ID == "" && d.Name == of.Name })
}

// user returns the user with an ID, or with a name in a domain.
func (s *Server) user(of userRef) *User {
	domain := s.domain(of.Domain)
	return found(s.Users, func(u User) bool {
		return of.ID != "" && u.ID == of.ID || of.ID == "" && domain != nil && u.DomainID == domain.ID && u.Name == of.Name
	})
}

// project returns the project with an ID, or with a name in a domain.
func (s *Server) project(of projectRef) *Project {
	domain := s.domain(of.Domain)
	return found(s.Projects, func(p Project) bool {
		return of.ID != "" && p.ID == of.ID || of.ID == "" && domain != nil && p.DomainID == domain.ID && p.Name == of.Name
	})
}

// credential returns the application credential with an ID, or with a name of a user.
func (s *Server) credential(of credentialRef) *Credential {
	return found(s.Credentials, func(c Credential) bool {
		if of.ID != "" {
			return c.ID == of.ID
		}
		user := s.user(of.User)
		return user != nil && c.UserID == user.ID && c.Name == of.Name
	})
}
