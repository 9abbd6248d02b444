package rest

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// NewClient returns an HTTP client that follows no redirect. Following one would send tokens and passwords to another server, and would
// turn a PATCH or DELETE into a GET. A redirect is a RedirectError. timeout bounds one request; zero: nothing does.
func NewClient(transport http.RoundTripper, timeout time.Duration) *http.Client {
	return &http.Client{Transport: transport, Timeout: timeout, CheckRedirect: func(to *http.Request, via []*http.Request) error {
		return &RedirectError{Method: via[0].Method, Status: to.Response.StatusCode, from: via[0].URL, to: to.URL}
	}}
}

// RedirectError says that a server redirects a request. Nothing was sent to the other address.
type RedirectError struct {
	Method string
	Status int
	from   *url.URL
	to     *url.URL

	// Setting says how the user names the address of the server, as in "set SETTING to ...". The client that sent the request sets it.
	Setting string
	// Root is where the paths of the API begin, such as "/v1". The client that sent the request sets it.
	Root string
}

// Error names both addresses without their secrets, and says which address to configure.
func (e *RedirectError) Error() string {
	show := ofAPI
	if e.Setting == "" {
		show = func(u *url.URL) string { return PlainURL(u.String()) }
	}
	fact := fmt.Sprintf("%s %s is redirected to %s (%d %s), and the provider follows no redirect", e.Method, show(e.from), show(e.to),
		e.Status, http.StatusText(e.Status))
	if e.Setting == "" {
		return fact
	}
	if address := e.address(); address != "" {
		return fmt.Sprintf("%s. If that server is the right one, set %s to %s", fact, e.Setting, address)
	}
	return fmt.Sprintf("%s. Check %s, and the proxies before the server", fact, e.Setting)
}

// To returns the server that the request was redirected to.
func (e *RedirectError) To() string { return Origin(e.to.String()) }

// address returns the address that leads there without a redirect; "" if none is known to.
func (e *RedirectError) address() string {
	at := strings.Index(e.from.Path, e.Root)
	if at < 0 || e.Root == "" {
		return ""
	}
	path, found := strings.CutSuffix(strings.TrimRight(e.to.Path, "/"), strings.TrimRight(e.from.Path[at:], "/"))
	moved := url.URL{Scheme: e.to.Scheme, Host: e.to.Host, Path: path}
	if here := (url.URL{Scheme: e.from.Scheme, Host: e.from.Host, Path: e.from.Path[:at]}); !found || moved == here {
		return ""
	}
	return moved.String()
}
