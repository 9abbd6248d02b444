package doctor

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/clock"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/rest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/failure"
)

// checkIronic says whether Ironic answers, and at which stage a request to it fails.
func checkIronic(s *sight) []Check {
	const name = "Ironic"
	switch {
	case s.versionless == nil:
		return []Check{{Name: name, Result: OK, Fact: "Ironic answers at " + s.endpoint + "."}}
	case isKeystones(s.versionless):
		return []Check{{
			Name: name, Result: Unknown, Fact: "The URL of Ironic is in the service catalog of Keystone, which gives none.",
			Next: "See the check Keystone.",
		}}
	}
	return []Check{{
		Name: name, Result: Problem, Fact: stageOf(s.versionless) + ": " + failure.Sentence(s.versionless),
		Next: failure.Advise(s.versionless),
	}}
}

func isKeystones(err error) bool {
	stage := api.StageOf(err)
	return stage == api.AtKeystone || stage == api.AtCatalog
}

func stageOf(err error) string {
	var name *net.DNSError
	var redirect *rest.RedirectError
	var status *api.StatusError
	switch {
	case api.StageOf(err) == api.AtSettings:
		return "Settings"
	case errors.As(err, &name):
		return "Name resolution"
	case api.IsUntrusted(err):
		return "TLS"
	case errors.As(err, &redirect):
		return "Redirect"
	case errors.As(err, &status) && status.Status == http.StatusNotFound:
		return "Path"
	case errors.As(err, &status):
		return "HTTP"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "TCP"
	case strings.Contains(err.Error(), "tls:"), strings.Contains(err.Error(), "HTTP response to HTTPS client"):
		return "TLS"
	case api.IsConnectionLoss(err):
		return "Connection"
	}
	return "Answer"
}

// checkVersion says which Ironic answers, and whether this program knows it.
func checkVersion(s *sight) []Check {
	const name = "API version"
	if s.versionless != nil {
		return []Check{s.unknown(name, errNoIronic)}
	}
	c := Check{Name: name, Result: OK, Fact: fmt.Sprintf("Ironic supports API %s: Ironic %s. Requests use %s; this version of metal "+
		"knows %s to %s.",
		s.server, s.server.Release(), s.used, api.Oldest, api.Newest)}
	switch {
	case s.server < api.Oldest:
		c.Result, c.Next = Warning, "Upgrade Ironic: older ones than 21.4 are not tested."
	case s.server > api.Newest:
		c.Next = "Newer features of Ironic are not used. Is there a newer version of metal and of the provider?"
	case s.used < s.server:
		c.Result, c.Next = Warning, "microversion limits the API to "+s.used.String()+". Raise or remove it, unless you need the limit."
	}
	return []Check{c}
}

func checkUser(s *sight) []Check {
	const name = "user"
	var checks []Check
	if s.o.Site.Auth == api.AuthKeystone {
		checks = append(checks, checkKeystone(s))
	}
	switch {
	case s.connect != nil:
		return append(checks, s.unknown(name, errNoIronic))
	case s.nodes.err == nil && s.who == nil && s.o.Site.Auth == api.AuthHTTPBasic:
		return append(checks, Check{Name: name, Result: OK, Fact: "Ironic accepts user " + s.o.Site.Username +
			" by HTTP basic authentication. Without Keystone there are no roles: each user may do everything."})
	case s.nodes.err == nil && s.who == nil:
		return append(checks, Check{Name: name, Result: OK, Fact: "Ironic needs no credentials: everyone who reaches it may " +
			"do everything."})
	case s.nodes.err == nil:
		return append(checks, Check{Name: name, Result: OK, Fact: fmt.Sprintf("Ironic accepts %s.", whoText(s.who))})
	case api.IsDenied(s.nodes.err):
		return append(checks, Check{Name: name, Result: Problem, Fact: failure.Sentence(s.nodes.err), Next: failure.Advise(s.nodes.err)})
	}
	return append(checks, s.unknown(name, s.nodes.err))
}

func checkKeystone(s *sight) Check {
	const name = "Keystone"
	switch {
	case isKeystones(s.connect):
		return Check{Name: name, Result: Problem, Fact: failure.Sentence(s.connect), Next: failure.Advise(s.connect)}
	case api.StageOf(s.connect) == api.AtEndpoint:
		return Check{Name: name, Result: OK, Fact: "Keystone has given a token. Ironic does not answer: see the check Ironic."}
	case s.connect != nil:
		return Check{Name: name, Result: Unknown, Fact: "The settings are not complete: see the check Ironic."}
	case s.who == nil:
		return Check{Name: name, Result: OK, Fact: "The settings of the cloud name Ironic without Keystone."}
	}
	from := "the settings"
	if s.who.Place != "" {
		from = "its service catalog (" + s.who.Place + ")"
	}
	return Check{Name: name, Result: OK, Fact: fmt.Sprintf("Keystone has given a token, which is valid until %s. The URL of Ironic "+
		"is from %s.", s.who.Expires.UTC().Format(time.RFC3339), from)}
}

func whoText(who *api.Identity) string {
	scope := "with system scope"
	switch {
	case who.Project != "":
		scope = fmt.Sprintf("in project %s (%s, domain %s)", who.ProjectName, who.Project, who.ProjectDomain)
	case !who.System:
		scope = "without project and without system scope"
	}
	return fmt.Sprintf("user %s (domain %s) %s, roles %s", who.User, who.UserDomain, scope,
		strings.Join(slices.Compact(slices.Clone(who.Roles)), ", "))
}

// heartbeats is how long ago the last sign of life of a conductor that is alive may be, by Ironic's default settings, and a minute.
const heartbeats = 70*time.Second + time.Minute

func checkClocks(s *sight) []Check {
	const name = "clocks"
	if s.connect != nil {
		return []Check{s.unknown(name, errNoIronic)}
	}
	c := Check{Name: name, Result: OK, Fact: "The clocks of this machine and of Ironic's API differ by 2 s at most."}
	if s.ahead != 0 {
		c.Fact = fmt.Sprintf("The clock of Ironic's API is %s.", apart(s.ahead))
	}
	if s.apart > clock.Slack {
		c.Details = append(c.Details, fmt.Sprintf("answers of the API differ by %s: its services have several clocks, or its clock was set",
			s.apart.Round(time.Second)))
	}
	for _, conductor := range s.conductors.value {
		age, known := clock.Age(conductor.UpdatedAt, s.now)
		switch {
		case conductor.UpdatedAt.IsZero():
		case !known:
			c.Details = append(c.Details, fmt.Sprintf("the clock of conductor %s is at least %s ahead of that of the API",
				conductor.Hostname, conductor.UpdatedAt.Sub(s.now).Round(time.Second)))
		case conductor.Alive && age > heartbeats:
			c.Details = append(c.Details, fmt.Sprintf("conductor %s is alive, and its last sign of life is %s old: its clock is behind "+
				"that of the API, unless heartbeat_timeout is longer", conductor.Hostname, age.Round(time.Second)))
		}
	}
	if len(c.Details) > 0 || s.ahead.Abs() > clock.Slack {
		c.Result, c.Details = Warning, fold(c.Details)
		c.Next = "Synchronise the clocks, for example by NTP. Time-outs and leases are counted by Ironic's clock, and the sign of life " +
			"of a conductor by its own."
	}
	return []Check{c}
}

// apart says how far a clock is ahead of that of this machine.
func apart(ahead time.Duration) string {
	if ahead < 0 {
		return fmt.Sprintf("%s behind that of this machine", ahead.Abs().Round(time.Second))
	}
	return fmt.Sprintf("%s ahead of that of this machine", ahead.Round(time.Second))
}
