// Package ironic is a client of the Bare Metal API: transport, microversions, retries, lists that many readers share, polling, and
// errors. It contains no policy about machines.
package ironic

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gophercloud/gophercloud/v2"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/rest"
)

// AuthType says how a Client authenticates.
type AuthType string

// The ways to authenticate that Ironic supports (its auth_strategy).
const (
	AuthNone      AuthType = "none"
	AuthHTTPBasic AuthType = "http_basic"
	AuthKeystone  AuthType = "keystone"
)

// ImpliedAuth returns the way to authenticate that the other settings imply: a cloud and a username that are configured, and the environment.
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

// Config is the configuration of a Client. An Endpoint or Keystone is required.
type Config struct {
	// Endpoint is Ironic's URL, with or without /v1. If it is empty, Keystone's service catalog provides it.
	Endpoint           string
	Auth               AuthType
	Username, Password string // for AuthHTTPBasic

	// For AuthKeystone: a name in clouds.yaml, and the region and the interface (public, internal or admin) of the catalog. What is empty, is read
	// from the OS_* variables and clouds.yaml.
	Cloud, Region, Interface string
	Environ                  []string // the environment, as from os.Environ; nil: that of the process

	CACertFile, ClientCertFile, ClientKeyFile string
	Insecure                                  bool // do not verify the server's certificate

	Microversion   Microversion  // upper bound; zero: the highest that both the server and the client support
	RequestTimeout time.Duration // of one HTTP request; zero: DefaultRequestTimeout
	APITimeout     time.Duration // how long to wait for Keystone, the API and a conductor before the first use; zero: no waiting
	PollInterval   time.Duration // the longest time between two polls of a waiting node; zero: DefaultPollInterval

	// InspectorURL is the URL of ironic-inspector, for sites on which it does the discovery; empty: none.
	InspectorURL string

	// PollFields are additional fields of nodes that polls request.
	PollFields []string
	// OthersAtWork reports, from a list of all nodes, whether other runs have operations in progress. Polling then pauses longer.
	// nil: unknown.
	OthersAtWork func(fleet map[string]*Node) bool

	Transport http.RoundTripper // nil: a transport made from the TLS settings above
	Secrets   *rest.Secrets     // nil: only those of this configuration. The client removes them from Ironic's texts, and adds its own
	Logger    *slog.Logger      // nil: silent. Bodies and headers are never logged
	UserAgent string

	// Unknown names the part of the configuration that Terraform does not know yet during a plan. Every use of the Client then
	// returns an UnknownConfigError.
	Unknown string
}

// Client is a client of one Ironic. It is safe for concurrent use. A process should use one Client for all reading and waiting,
// because the Client polls and lists for all its callers at once.
type Client struct {
	cfg        Config
	nodes      *batch[Node]
	ports      *batch[[]Port]
	portGroups *batch[[]PortGroup]
	allocs     *batch[Allocation]
	fleet      *watch[Node]
	pending    *watch[Allocation]
	locks      locks
	defect     parentDefect
	silence    silence

	// The lock of the connection protects these until the connection is there; then they do not change.
	refused  bool      // the connection was refused before the first answer
	keystone *keystone // nil without Keystone

	clock atomic.Int64 // how far the server's clock is ahead of the local one, in nanoseconds

	mu      sync.Mutex
	service *gophercloud.ServiceClient // nil until the first successful use
	server  Microversion               // the highest version that the server supports
}

// New returns a Client. It makes no request and reads no file, so that validate and plan work offline. Errors in the configuration
// appear on first use.
func New(cfg Config) *Client {
	if cfg.RequestTimeout == 0 {
		cfg.RequestTimeout = DefaultRequestTimeout
	}
	if cfg.PollInterval == 0 {
		cfg.PollInterval = DefaultPollInterval
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Environ == nil {
		cfg.Environ = os.Environ()
	}
	if cfg.Secrets == nil {
		cfg.Secrets = &rest.Secrets{}
	}
	c := &Client{cfg: cfg}
	cfg.Secrets.Hide(cfg.Password)
	cfg.Secrets.HideURL(cfg.Endpoint)
	c.nodes = newBatch(c.getNode, c.ListNodesByID)
	c.ports = newBatch(c.listNodePorts, c.listPortsByNode)
	c.ports.absent = &[]Port{}
	c.portGroups = newBatch(c.listNodePortGroups, c.listPortGroupsByNode)
	c.portGroups.absent = &[]PortGroup{}
	c.allocs = newBatch(c.getAllocation, c.listAllocationsByID)
	c.fleet = newWatch(cfg.PollInterval, c.shortNode, c.ShortNodes)
	c.fleet.others = cfg.OthersAtWork
	c.pending = newWatch(cfg.PollInterval, c.getAllocation, c.listAllocationsByID)
	return c
}

// Known reports whether the configuration is complete. It is false during plans in which the provider's configuration depends on
// something that does not exist yet.
func (c *Client) Known() bool { return c.cfg.Unknown == "" }

// Logger returns the client's logger.
func (c *Client) Logger() *slog.Logger { return c.cfg.Logger }

// PollInterval returns the longest time between two polls of a waiting node.
func (c *Client) PollInterval() time.Duration { return c.cfg.PollInterval }

// UserAgent returns the User-Agent header of requests.
func (c *Client) UserAgent() string { return c.cfg.UserAgent }

// Redact returns a text without the secrets of the configuration, credentials and queries of URLs.
func (c *Client) Redact(text string) string { return c.cfg.Secrets.Redact(text) }

// Request sends a request for which gophercloud has no function. path is relative to /v1/ and includes the query. If out is nil,
// the answer's body is ignored.
func (c *Client) Request(ctx context.Context, method, path string, body, out any) error {
	api, err := c.api(ctx)
	if err != nil {
		return err
	}
	opts := &gophercloud.RequestOpts{
		JSONBody: body, JSONResponse: out, OkCodes: []int{http.StatusOK, http.StatusCreated, http.StatusAccepted, http.StatusNoContent},
	}
	_, err = api.Request(ctx, method, api.ServiceURL(path), opts)
	return c.wrap(ctx, err)
}

// relists is how often List starts again because the list changed between two pages.
const relists = 3

// errShifted says that the last object of a page was deleted before the next page was requested.
var errShifted = errors.New("the list changed too often while it was read")

// List reads all pages of a list; key names the array in the answers. It uses only the marker of `next`, because that URL has
// Ironic's own host name, which may differ behind a proxy, and lacks most filters of the query.
func List[T any](ctx context.Context, c *Client, path, key string, query url.Values) ([]T, error) {
	for try := 1; ; try++ {
		all, err := listOnce[T](ctx, c, path, key, query)
		if !errors.Is(err, errShifted) || try == relists {
			return all, err
		}
	}
}

func listOnce[T any](ctx context.Context, c *Client, path, key string, query url.Values) (all []T, err error) {
	for page, err := range pages[T](ctx, c, path, key, query) {
		if err != nil {
			return nil, err
		}
		all = append(all, page...)
	}
	return all, nil
}

// Stream yields the objects of a list while it reads the pages, and requests a page only if the reader wants more. If the list changes
// between two pages, Stream starts again, and leaves out what it has yielded. An error ends it. id returns the UUID of an object.
func Stream[T any](ctx context.Context, c *Client, path, key string, query url.Values, id func(*T) string) iter.Seq2[*T, error] {
	return func(yield func(*T, error) bool) {
		yielded := map[string]bool{}
		for try := 1; ; try++ {
			shifted := false
			for page, err := range pages[T](ctx, c, path, key, query) {
				if shifted = errors.Is(err, errShifted) && try < relists; shifted {
					break
				}
				if err != nil {
					yield(nil, err)
					return
				}
				for i := range page {
					if uuid := id(&page[i]); !yielded[uuid] {
						yielded[uuid] = true
						if !yield(&page[i], nil) {
							return
						}
					}
				}
			}
			if !shifted {
				return
			}
		}
	}
}

// pages requests the pages of a list one after the other. An error ends it.
func pages[T any](ctx context.Context, c *Client, path, key string, query url.Values) iter.Seq2[[]T, error] {
	return func(yield func([]T, error) bool) {
		asked := url.Values{}
		maps.Copy(asked, query)
		var read rest.Listing
		for marker := ""; ; {
			items, next, err := page[T](ctx, c, path, key, asked, &read)
			if marker != "" && IsNotFound(err) {
				err = fmt.Errorf("list %s: %w", path, errShifted)
			}
			if !yield(items, err) || err != nil {
				return
			}
			if marker = next; marker == "" || len(items) == 0 {
				return
			}
			asked.Set("marker", marker)
		}
	}
}

// page requests one page of a list, and returns the marker of the next one; "" if there is none. read are the pages so far.
func page[T any](ctx context.Context, c *Client, path, key string, query url.Values, read *rest.Listing) (items []T, marker string, err error) {
	var answer map[string]jsonRaw
	if err := c.Request(ctx, http.MethodGet, path+"?"+query.Encode(), nil, &answer); err != nil {
		return nil, "", err
	}
	var next string
	if err := errors.Join(answer[key].into(&items), answer["next"].into(&next)); err != nil {
		return nil, "", fmt.Errorf("list %s: %w", path, err)
	}
	u, err := url.Parse(next)
	if err != nil {
		return nil, "", fmt.Errorf("list %s: %w", path, err)
	}
	marker = u.Query().Get("marker")
	again, err := read.Add(len(answer[key]), marker)
	if err == nil && again {
		err = errors.New("its pages refer to each other in a circle. Check the server and the proxies before it")
	}
	if err != nil {
		return nil, "", fmt.Errorf("list %s: %w", path, err)
	}
	return items, marker, nil
}

// ServerNow returns the time of the server's clock, estimated from its answers.
func (c *Client) ServerNow() time.Time { return time.Now().Add(time.Duration(c.clock.Load())) }

// setClock records how far the server's clock is ahead of the local one. It uses only answers with an API version, which come from
// Ironic itself, because Keystone and proxies have other clocks. The header has whole seconds, so setClock ignores small
// differences.
func (c *Client) setClock(answer http.Header) {
	date, err := http.ParseTime(answer.Get("Date"))
	if err != nil || answer.Get("X-OpenStack-Ironic-API-Maximum-Version") == "" {
		return
	}
	ahead := time.Until(date)
	if ahead.Abs() <= 2*time.Second {
		ahead = 0
	}
	c.clock.Store(int64(ahead))
}

// observed handles every request: it records the server's time and writes one log line, without headers and bodies because both
// contain secrets. After an interruption it waits a moment for the answer to a request that changes something. Otherwise the run
// would not know what Ironic has done, and could not record it.
type observed struct {
	next   http.RoundTripper
	client *Client
}

// RoundTrip sends the request and records its result.
func (o *observed) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := unaddressable(r.URL); err != nil {
		return nil, err
	}
	start, answered := time.Now(), o.awaited(r)
	resp, err := rest.RoundTrip(o.next, r)
	answered()
	attrs := []slog.Attr{
		slog.String("method", r.Method), slog.String("path", r.URL.Path), slog.Duration("took", time.Since(start)),
	}
	logger := o.client.cfg.Logger
	if err != nil {
		logger.LogAttrs(r.Context(), slog.LevelDebug, "request to "+o.server(r)+" got no answer", attrs...)
		o.note(r, start, 0)
		return resp, err
	}
	o.note(r, start, resp.StatusCode)
	o.client.setClock(resp.Header)
	attrs = append(attrs, slog.Int("status", resp.StatusCode), slog.String("request_id", resp.Header.Get("Openstack-Request-Id")))
	logger.LogAttrs(r.Context(), slog.LevelDebug, "request to "+o.server(r), attrs...)
	return resp, nil
}

// server names the server that a request goes to.
func (o *observed) server(r *http.Request) string {
	if k := o.client.keystone; k != nil && strings.HasPrefix(r.URL.String(), k.url) {
		return "Keystone"
	}
	return "Ironic"
}
