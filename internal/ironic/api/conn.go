// Package api is how requests travel to the Bare Metal API of Ironic and to Keystone: connection, credentials, API versions, retries, and
// what an error of the answer means. It knows nothing of nodes.
package api

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gophercloud/gophercloud/v2"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/rest"
)

// AuthType says how a Conn authenticates.
type AuthType string

// The ways to authenticate that Ironic supports (its auth_strategy).
const (
	AuthNone      AuthType = "none"
	AuthHTTPBasic AuthType = "http_basic"
	AuthKeystone  AuthType = "keystone"
)

// ImpliedAuth returns the way to authenticate that the other settings imply: a cloud and a username that are configured, and the
// environment.
func ImpliedAuth(cloud, username string, getenv func(string) string) AuthType {
	switch {
	case cloud != "":
		return AuthKeystone
	case username != "":
		return AuthHTTPBasic
	case HasCloud(getenv):
		return AuthKeystone
	}
	return AuthNone
}

// HasCloud reports whether the environment names a cloud or a Keystone.
func HasCloud(getenv func(string) string) bool {
	return getenv("OS_CLOUD") != "" || getenv("OS_AUTH_URL") != ""
}

// Defaults of Config.
const (
	DefaultRequestTimeout = 60 * time.Second
	DefaultPollInterval   = 10 * time.Second
)

// Config is the configuration of a Conn. An Endpoint or Keystone is required.
type Config struct {
	// Endpoint is Ironic's URL, with or without /v1. If it is empty, Keystone's service catalog provides it.
	Endpoint           string
	Auth               AuthType
	Username, Password string // for AuthHTTPBasic

	// For AuthKeystone: a name in clouds.yaml, and the region and the interface (public, internal or admin) of the catalog. What is empty,
	// is read from the OS_* variables and clouds.yaml.
	Cloud, Region, Interface string
	Environ                  []string // the environment, as from os.Environ; nil: that of the process

	CACertFile, ClientCertFile, ClientKeyFile string
	Insecure                                  bool // do not verify the server's certificate

	Microversion   Microversion  // upper bound; zero: the highest that both the server and the client support
	RequestTimeout time.Duration // of one HTTP request; zero: DefaultRequestTimeout
	APITimeout     time.Duration // how long to wait for Keystone, the API and a conductor before the first use; zero: no waiting
	PollInterval   time.Duration // the longest time between two polls of a waiting node; zero: DefaultPollInterval

	// InspectorEndpoint is the URL of ironic-inspector, for sites on which it does the discovery; empty: none.
	InspectorEndpoint string

	Transport http.RoundTripper // nil: a transport made from the TLS settings above
	Secrets   *rest.Secrets     // nil: only those of this configuration. The client removes them from Ironic's texts, and adds its own
	Logger    *slog.Logger      // nil: silent. Bodies and headers are never logged
	UserAgent string

	// Silent is told what the log is told about a server that does not answer; nil: only the log is.
	Silent func(text string)

	// Unknown names the part of the configuration that Terraform does not know yet during a plan. Every use of the Conn then
	// returns an error of rest.KindUnknownConfig.
	Unknown string
}

// Conn is the connection to one Ironic. It is safe for concurrent use.
type Conn struct {
	cfg      Config
	locks    locks
	silences sync.Map // of servers, by their keys

	// The lock of the connection protects these until the connection is there; then they do not change.
	refused  bool      // a request was given up because its connection was refused, before the first answer
	keystone *keystone // nil without Keystone

	transport http.RoundTripper

	pace  pace
	clock atomic.Int64 // how far the server's clock is ahead of the local one, in nanoseconds
	hosts struct {     // the least and the most that an answer has said of that: several API services have several clocks
		sync.Mutex
		least, most time.Duration
		known       bool
	}

	mu      sync.Mutex
	service *gophercloud.ServiceClient // nil until the first successful use
	server  Microversion               // the highest version that the server supports
}

// New returns a Conn. It makes no request and reads no file, so that validate and plan work offline. Errors in the configuration
// appear on first use.
func New(cfg Config) *Conn {
	cfg.RequestTimeout = cmp.Or(cfg.RequestTimeout, DefaultRequestTimeout)
	cfg.PollInterval = cmp.Or(cfg.PollInterval, DefaultPollInterval)
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Environ == nil {
		cfg.Environ = os.Environ()
	}
	if cfg.Secrets == nil {
		cfg.Secrets = &rest.Secrets{}
	}
	cfg.Secrets.Hide(cfg.Password)
	cfg.Secrets.HideURL(cfg.Endpoint)
	return &Conn{cfg: cfg}
}

// Known reports whether the configuration is complete. It is false during plans in which the provider's configuration depends on
// something that does not exist yet.
func (c *Conn) Known() bool { return c.cfg.Unknown == "" }

// Address returns the URL of Ironic's API, as far as it is known.
func (c *Conn) Address() string {
	if service := c.connected(); service != nil {
		return service.Endpoint
	}
	return c.cfg.Endpoint
}

// Logger returns the logger of the configuration.
func (c *Conn) Logger() *slog.Logger { return c.cfg.Logger }

// PollInterval returns the longest time between two polls of a waiting node.
func (c *Conn) PollInterval() time.Duration { return c.cfg.PollInterval }

// Lock waits for the lock of a node or another name, so that this process does not change it twice at the same time, and returns the
// function that releases it.
func (c *Conn) Lock(ctx context.Context, name string) (unlock func(), err error) {
	return c.locks.lock(ctx, name)
}

// UserAgent returns the User-Agent header of requests.
func (c *Conn) UserAgent() string { return c.cfg.UserAgent }

// Redact returns a text without the secrets of the configuration, credentials and queries of URLs.
func (c *Conn) Redact(text string) string { return c.cfg.Secrets.Redact(text) }

// ServerNow returns the time of the server's clock, estimated from its answers.
func (c *Conn) ServerNow() time.Time { return time.Now().Add(c.Ahead()) }

// Ahead returns how far the server's clock is ahead of the local one, to about two seconds: differences up to that count as none.
func (c *Conn) Ahead() time.Duration { return time.Duration(c.clock.Load()) }

// Apart returns how far the clocks of the API services that have answered differ, at least.
func (c *Conn) Apart() time.Duration {
	c.hosts.Lock()
	defer c.hosts.Unlock()
	return c.hosts.most - c.hosts.least
}

// AnswersTake returns how long the slowest answer of the last minutes took.
func (c *Conn) AnswersTake() time.Duration { return c.pace.slowest() }

// connected returns the service client; nil before the first successful use.
func (c *Conn) connected() *gophercloud.ServiceClient {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.service
}
