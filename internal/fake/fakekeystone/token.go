package fakekeystone

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

// TokenPrefix begins every token, and nothing else.
const TokenPrefix = "gAAAAA-fake-token-"

// Identity says for whom a token is: a user, and the scope.
type Identity struct {
	UserID, ProjectID string // ProjectID is empty with another scope
	System            bool
	Roles             []string // names
}

// token is a token that was issued. The roles are computed when they are asked for.
type token struct {
	user      *User
	project   *Project // nil with another scope
	domain    *Domain  // nil with another scope
	system    bool
	byApp     bool // an application credential stands for the user
	methods   []string
	issued    time.Time
	expiresAt time.Time
}

// Identify returns for whom a valid token is. A token whose user has lost all roles in the scope is not valid any more.
func (s *Server) Identify(id string) (Identity, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.valid(id)
	if t == nil {
		return Identity{}, false
	}
	identity := Identity{UserID: t.user.ID, System: t.system, Roles: slices.Clone(t.roles())}
	if t.project != nil {
		identity.ProjectID = t.project.ID
	}
	return identity, true
}

// RevokeTokens makes all tokens invalid that exist.
func (s *Server) RevokeTokens() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tokens = nil
}

// Issued returns how many tokens were issued.
func (s *Server) Issued() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.issued
}

// valid returns a token that is still valid; nil if there is none.
func (s *Server) valid(id string) *token {
	t := s.tokens[id]
	if t == nil || !t.expiresAt.After(time.Now()) || t.scoped() && len(t.roles()) == 0 {
		return nil
	}
	return t
}

func (t *token) scoped() bool { return t.project != nil || t.domain != nil || t.system }

// roles returns the names of the user's roles in the scope.
func (t *token) roles() []string {
	switch {
	case t.project != nil:
		return t.user.Projects[t.project.ID]
	case t.domain != nil:
		return t.user.Domains[t.domain.ID]
	case t.system:
		return t.user.System
	}
	return nil
}

// The parts of a request for a token.
type (
	domainRef struct{ ID, Name string }
	userRef   struct {
		ID, Name, Password string
		Domain             *domainRef
	}
	projectRef struct {
		ID, Name string
		Domain   *domainRef
	}
	credentialRef struct {
		ID, Name, Secret string
		User             userRef
	}
	scopeRef struct {
		Project *projectRef
		Domain  *domainRef
		System  *struct{ All bool }
	}
	authRef struct {
		Identity struct {
			Methods    []string
			Password   struct{ User userRef }
			Token      struct{ ID string }
			Credential credentialRef `json:"application_credential"`
		}
		Scope json.RawMessage
	}
)

func (d *domainRef) String() string {
	switch {
	case d == nil:
		return ""
	case d.ID != "":
		return "@#" + d.ID
	}
	return "@" + d.Name
}

// named writes a name with its domain, or an ID.
func named(id, name string, domain *domainRef) string {
	if id != "" {
		return "#" + id
	}
	return name + domain.String()
}

// asked describes a request for a token without its secrets. IDs begin with "#".
func (a *authRef) asked(scope *scopeRef) string {
	i := a.Identity
	text := strings.Join(i.Methods, "+")
	for _, method := range i.Methods {
		switch method {
		case "password":
			text += " " + named(i.Password.User.ID, i.Password.User.Name, i.Password.User.Domain)
		case "application_credential":
			text += " " + named(i.Credential.ID, i.Credential.Name, nil)
			if i.Credential.ID == "" {
				text += " of " + named(i.Credential.User.ID, i.Credential.User.Name, i.Credential.User.Domain)
			}
		}
	}
	switch {
	case scope == nil:
		return text
	case scope.System != nil:
		return text + " for the system"
	case scope.Project != nil:
		return text + " for " + named(scope.Project.ID, scope.Project.Name, scope.Project.Domain)
	}
	return text + " for domain " + scope.Domain.String()
}

func (s *Server) authenticate(body []byte, entry *Request) reply {
	var request struct{ Auth *authRef }
	if err := json.Unmarshal(body, &request); err != nil || request.Auth == nil {
		return malformed("auth", "request body")
	}
	auth := request.Auth
	var scope *scopeRef
	if len(auth.Scope) > 0 && string(auth.Scope) != `"unscoped"` {
		if err := json.Unmarshal(auth.Scope, &scope); err != nil {
			return malformed("scope", "auth")
		}
	}
	entry.Asked = auth.asked(scope)
	t, refused := s.identify(auth)
	if refused != nil {
		return *refused
	}
	if refused := s.limit(t, scope, len(auth.Scope) > 0); refused != nil {
		return *refused
	}
	s.issued++
	id := fmt.Sprint(TokenPrefix, s.issued)
	if s.tokens == nil {
		s.tokens = map[string]*token{}
	}
	s.tokens[id] = t
	return s.render(http.StatusCreated, id, t)
}

// identify checks who asks. It returns a token without a scope, or a refusal.
func (s *Server) identify(auth *authRef) (*token, *reply) {
	life := s.TokenLife
	if life == 0 {
		life = time.Hour
	}
	now := time.Now()
	t := &token{methods: auth.Identity.Methods, issued: now, expiresAt: now.Add(life)}
	for _, method := range auth.Identity.Methods {
		var secret, given string
		switch method {
		case "password":
			asked := auth.Identity.Password.User
			if asked.ID == "" && asked.Domain == nil {
				return nil, refuse(malformed("domain", "user"))
			}
			t.user, given = s.user(asked), asked.Password
			if t.user != nil {
				secret = t.user.Password
			}
		case "application_credential":
			asked := auth.Identity.Credential
			given = asked.Secret
			if c := s.credential(asked); c != nil {
				t.user, t.project, t.byApp, secret = s.user(userRef{ID: c.UserID}), s.project(projectRef{ID: c.ProjectID}), true, c.Secret
			}
		case "token":
			old := s.valid(auth.Identity.Token.ID)
			if old == nil {
				return nil, refuse(fail(http.StatusNotFound, "Could not recognize Fernet token"))
			}
			t.user, t.expiresAt, t.byApp = old.user, old.expiresAt, old.byApp
			t.methods = append(slices.Clone(old.methods), "token")
			continue
		}
		if t.user == nil || given == "" || given != secret {
			return nil, refuse(s.unauthorized(given))
		}
	}
	if t.user == nil {
		return nil, refuse(malformed("methods", "identity"))
	}
	return t, nil
}

// limit gives a token its scope, or returns a refusal. given says whether the request has a scope, which may be "unscoped".
func (s *Server) limit(t *token, scope *scopeRef, given bool) *reply {
	switch {
	case t.byApp && scope != nil:
		return refuse(fail(http.StatusUnauthorized, "Error authenticating with application credential: Application credentials cannot "+
			"request a scope."))
	case t.byApp:
		return nil
	case scope == nil && !given && t.user.DefaultProjectID != "" && !slices.Contains(t.methods, "token"):
		t.project = s.project(projectRef{ID: t.user.DefaultProjectID})
	case scope == nil:
		return nil
	case scope.Project != nil:
		if scope.Project.ID == "" && scope.Project.Domain == nil {
			return refuse(malformed("domain", "project"))
		}
		t.project = s.project(*scope.Project)
	case scope.Domain != nil:
		t.domain = s.domain(scope.Domain)
	case scope.System != nil:
		t.system = scope.System.All
	}
	if len(t.roles()) == 0 {
		return refuse(s.unauthorized(""))
	}
	return nil
}

// show calls act for the token X-Subject-Token if X-Auth-Token is valid.
func (s *Server) show(r *http.Request, act func(id string, t *token) reply) reply {
	if s.valid(r.Header.Get("X-Auth-Token")) == nil {
		return s.unauthorized("")
	}
	id := r.Header.Get("X-Subject-Token")
	t := s.valid(id)
	if t == nil {
		return fail(http.StatusNotFound, "Could not recognize Fernet token")
	}
	return act(id, t)
}

func (s *Server) render(status int, id string, t *token) reply {
	shown := map[string]any{
		"methods": t.methods, "audit_ids": []string{"audit"},
		"issued_at":  t.issued.UTC().Format("2006-01-02T15:04:05.000000Z"),
		"expires_at": t.expiresAt.UTC().Format("2006-01-02T15:04:05.000000Z"),
		"user":       map[string]any{"id": t.user.ID, "name": t.user.Name, "domain": s.renderDomain(t.user.DomainID)},
	}
	if t.scoped() {
		roles := []any{}
		for _, name := range t.roles() {
			roles = append(roles, map[string]any{"id": name + "-id", "name": name})
		}
		shown["roles"], shown["catalog"] = roles, s.catalog()
	}
	switch {
	case t.project != nil:
		shown["project"] = map[string]any{"id": t.project.ID, "name": t.project.Name, "domain": s.renderDomain(t.project.DomainID)}
	case t.domain != nil:
		shown["domain"] = s.renderDomain(t.domain.ID)
	case t.system:
		shown["system"] = map[string]any{"all": true}
	}
	r := answer(status, map[string]any{"token": shown})
	r.Header.Set("X-Subject-Token", id)
	return r
}

// renderDomain writes the domain with an ID.
func (s *Server) renderDomain(id string) map[string]any {
	shown := map[string]any{"id": id}
	if d := s.domain(&domainRef{ID: id}); d != nil {
		shown["name"] = d.Name
	}
	return shown
}

func (s *Server) catalog() []any {
	services := []any{}
	for i, service := range s.Catalog {
		endpoints := []any{}
		for j, e := range service.Endpoints {
			endpoints = append(endpoints, map[string]any{
				"id": fmt.Sprintf("endpoint-%d-%d", i, j), "interface": e.Interface, "region": e.Region,
				"region_id": e.Region, "url": e.URL,
			})
		}
		services = append(services, map[string]any{
			"id": fmt.Sprintf("service-%d", i), "type": service.Type, "name": service.Name,
			"endpoints": endpoints,
		})
	}
	return services
}

func answer(status int, document any) reply {
	body, err := json.Marshal(document)
	if err != nil {
		panic(err) // only strings, numbers and maps of them are written
	}
	return reply{Status: status, Header: http.Header{"Content-Type": {"application/json"}}, Body: body}
}

func fail(status int, message string) reply {
	return answer(status, map[string]any{"error": map[string]any{"code": status, "message": message, "title": http.StatusText(status)}})
}

// malformed says that a request lacks a part.
func malformed(part, of string) reply {
	return fail(http.StatusBadRequest, fmt.Sprintf("Expecting to find %s in %s. The server could not comply with the request since it "+
		"is either malformed or otherwise incorrect. The client is assumed to be in error.", part, of))
}

// unauthorized is Keystone's one answer to wrong credentials and to users without a role: it tells nothing.
func (s *Server) unauthorized(given string) reply {
	message := "The request you have made requires authentication."
	if s.RepeatsSecrets && given != "" {
		message = fmt.Sprintf("Could not authenticate with %s.\nmore", given)
	}
	return fail(http.StatusUnauthorized, message)
}

func refuse(r reply) *reply { return &r }
