// Package ironic is the domain: it talks to OpenStack Ironic, drives nodes through their provision states, waits, and
// says what went wrong. It knows nothing of Terraform.
package ironic

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
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
	"github.com/gophercloud/gophercloud/v2/openstack"
	"github.com/gophercloud/gophercloud/v2/openstack/baremetal/httpbasic"
	"github.com/gophercloud/gophercloud/v2/openstack/baremetal/noauth"
	"github.com/gophercloud/gophercloud/v2/openstack/config"
	"github.com/gophercloud/gophercloud/v2/openstack/config/clouds"
)

// AuthType says how a Client proves who it is.
type AuthType string

// The ways to authenticate that Ironic offers (its auth_strategy).
const (
	AuthNone      AuthType = "none"
	AuthHTTPBasic AuthType = "http_basic"
	AuthKeystone  AuthType = "keystone"
)

// Defaults of Config.
const (
	DefaultRequestTimeout = 60 * time.Second
	DefaultPollInterval   = 10 * time.Second
)

// maxConnections caps what one process opens to Ironic: its standalone API has a listen backlog of 5 and answers about
// a hundred requests a second however many ask at once (reference ironic-facts.md 9.4).
const maxConnections = 8

// Config is all that a Client needs. Its zero value talks to nobody: an Endpoint or Keystone is required.
type Config struct {
	// Endpoint is Ironic's URL, with or without /v1. Empty with Keystone: taken from the service catalog.
	Endpoint           string
	Auth               AuthType
	Username, Password string // for AuthHTTPBasic
	Cloud, Region      string // for AuthKeystone: a name in clouds.yaml, and which region of the catalog

	CACertFile, ClientCertFile, ClientKeyFile string
	Insecure                                  bool // do not verify the server's certificate

	Microversion   Microversion  // upper bound; zero: the highest that both sides know
	RequestTimeout time.Duration // of one HTTP request; zero: DefaultRequestTimeout
	APITimeout     time.Duration // how long to wait for the API and a conductor before the first use; zero: not at all
	PollInterval   time.Duration // between two looks at waiting nodes; zero: DefaultPollInterval

	// InspectorURL is where ironic-inspector answers, for sites on which it did the discovery; empty: nowhere.
	InspectorURL string

	Limit     Limit             // how much work the site is given at once
	Transport http.RoundTripper // nil: a transport made from the TLS settings above
	Images    http.RoundTripper // to look at live ISOs with; nil: http.DefaultTransport, which knows none of the settings above
	Logger    *slog.Logger      // nil: silent. Bodies and headers are never logged
	UserAgent string

	// Unknown names what of the configuration is not known yet (Terraform plans with such). Every use of the Client is
	// then an UnknownConfigError.
	Unknown string
}

// Client talks to one Ironic. It is safe for concurrent use, and all waiting and reading in a process should go through
// one Client, because it polls and lists for all its users at once.
type Client struct {
	cfg     Config
	secrets secrets
	nodes   *batch[Node]
	ports   *batch[[]Port]
	allocs  *batch[Allocation]
	fleet   *watch[Node]
	pending *watch[Allocation]
	locks   locks
	gate    *gate
	defect  parentDefect

	images images
	guard  Guard

	clock atomic.Int64 // how far the server's clock is ahead of ours, in nanoseconds

	mu      sync.Mutex
	service *gophercloud.ServiceClient // nil until the first use worked
	server  Microversion               // the highest that the server knows
}

// New returns a Client. It makes no request and reads no file: everything that can fail does so on first use, so that
// validating and planning work offline.
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
	c := &Client{cfg: cfg, guard: freely{}}
	c.secrets.hide(cfg.Password)
	if u, err := url.Parse(cfg.Endpoint); err == nil && u.User != nil {
		password, _ := u.User.Password()
		c.secrets.hide(password)
	}
	c.gate = &gate{c: c, limit: cfg.Limit, waiting: map[*applicant]struct{}{}, started: map[string]bool{}}
	c.nodes = newBatch(c.getNode, c.listNodesByID)
	c.ports = newBatch(c.listNodePorts, c.listPortsByNode)
	c.ports.absent = &[]Port{}
	c.allocs = newBatch(c.getAllocation, c.listAllocationsByID)
	c.fleet = newWatch(cfg.PollInterval, c.pollNode, c.pollNodes)
	c.pending = newWatch(min(cfg.PollInterval, allocationInterval), c.getAllocation, c.listAllocationsByID)
	return c
}

// Guard is asked before a machine is booted, switched or written; an error stops it. The verb is empty if only its power is
// switched. Of a node that comes from a short list everything is missing that waiting does not need, but driver_info is there.
type Guard interface {
	// Ready may take minutes, and may make the machine ready for the verb. It is called before the node joins the queue of
	// the provisioning limit.
	Ready(ctx context.Context, node *Node, verb Verb) error
	// Still is called right before the verb is sent, while other nodes wait for it: it must not take more than seconds.
	Still(ctx context.Context, node *Node, verb Verb) error
}

// SetGuard sets the guard; it is to be called before the client is used.
func (c *Client) SetGuard(guard Guard) { c.guard = guard }

// freely is the guard that lets everything pass.
type freely struct{}

func (freely) Ready(context.Context, *Node, Verb) error { return nil }
func (freely) Still(context.Context, *Node, Verb) error { return nil }

// Known reports whether the configuration is complete. It is false during plans in which the provider's configuration
// depends on something that does not exist yet.
func (c *Client) Known() bool { return c.cfg.Unknown == "" }

// Hide makes a secret unspeakable: wherever it occurs in the text of an error from this client, stars appear instead.
func (c *Client) Hide(secret string) { c.secrets.hide(secret) }

// api returns the service client to send requests with, connecting on first use: credentials, certificates, the
// waiting for the API, and the microversion. A failure is not remembered; the next use tries again.
func (c *Client) api(ctx context.Context) (*gophercloud.ServiceClient, error) {
	if c.cfg.Unknown != "" {
		return nil, &UnknownConfigError{Attribute: c.cfg.Unknown}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.service != nil {
		return c.service, nil
	}
	service, err := c.connect(ctx)
	if err != nil {
		return nil, err
	}
	server, err := c.awaitAPI(ctx, service)
	if err != nil {
		return nil, err
	}
	version := server
	if c.cfg.Microversion != 0 {
		version = min(version, c.cfg.Microversion)
	}
	service.Microversion = min(version, newest).String()
	c.server, c.service = server, service
	return service, nil
}

// connect prepares a service client for the configured way to authenticate. Only Keystone makes requests here.
func (c *Client) connect(ctx context.Context) (*gophercloud.ServiceClient, error) {
	transport := c.cfg.Transport
	if transport == nil {
		tlsConfig, err := c.cfg.tls()
		if err != nil {
			return nil, err
		}
		transport = newTransport(tlsConfig)
	}
	hc := http.Client{Transport: &observed{next: transport, client: c}, Timeout: c.cfg.RequestTimeout}
	var service *gophercloud.ServiceClient
	var err error
	switch c.cfg.Auth {
	case AuthKeystone:
		service, err = c.connectKeystone(ctx, &hc)
	case AuthHTTPBasic:
		service, err = httpbasic.NewBareMetalHTTPBasic(httpbasic.EndpointOpts{
			IronicEndpoint: c.cfg.Endpoint, IronicUser: c.cfg.Username, IronicUserPassword: c.cfg.Password,
		})
	case AuthNone:
		service, err = noauth.NewBareMetalNoAuth(noauth.EndpointOpts{IronicEndpoint: c.cfg.Endpoint})
	default:
		err = fmt.Errorf("unknown auth_type %q", c.cfg.Auth)
	}
	if err != nil {
		return nil, err
	}
	service.HTTPClient = hc
	service.RetryFunc = retry
	service.UserAgent.Prepend(c.cfg.UserAgent)
	if c.cfg.Endpoint != "" {
		service.Endpoint = c.cfg.Endpoint
	}
	service.Endpoint = strings.TrimSuffix(strings.TrimRight(service.Endpoint, "/"), "/v1") + "/v1/"
	return service, nil
}

// connectKeystone authenticates with clouds.yaml when a cloud is named, else with the OS_* variables.
func (c *Client) connectKeystone(ctx context.Context, hc *http.Client) (*gophercloud.ServiceClient, error) {
	endpoint := gophercloud.EndpointOpts{Region: c.cfg.Region}
	var auth gophercloud.AuthOptions
	var err error
	if c.cfg.Cloud != "" {
		options := []clouds.ParseOption{clouds.WithCloudName(c.cfg.Cloud)}
		if c.cfg.Region != "" {
			options = append(options, clouds.WithRegion(c.cfg.Region))
		}
		var tlsConfig *tls.Config
		auth, endpoint, tlsConfig, err = clouds.Parse(options...)
		if err == nil && tlsConfig != nil && c.cfg.Transport == nil && c.cfg.CACertFile == "" && !c.cfg.Insecure {
			hc.Transport = &observed{next: newTransport(tlsConfig), client: c}
		}
	} else {
		auth, err = openstack.AuthOptionsFromEnv()
		if endpoint.Region == "" {
			endpoint.Region = os.Getenv("OS_REGION_NAME")
		}
	}
	if err != nil {
		return nil, &AuthError{Auth: AuthKeystone, Err: err}
	}
	c.secrets.hide(auth.Password)
	c.secrets.hide(auth.ApplicationCredentialSecret)
	c.secrets.hide(auth.TokenID)
	auth.AllowReauth = true
	provider, err := config.NewProviderClient(ctx, auth, config.WithHTTPClient(*hc))
	if err != nil {
		return nil, c.authError(err)
	}
	service, err := openstack.NewBareMetalV1(provider, endpoint)
	var missing *gophercloud.ErrEndpointNotFound
	if err != nil && (c.cfg.Endpoint == "" || !errors.As(err, &missing)) {
		return nil, c.authError(err)
	}
	if err != nil {
		service = &gophercloud.ServiceClient{ProviderClient: provider, Type: "baremetal"}
	}
	return service, nil
}

// tls makes the TLS settings from the configured files.
func (cfg Config) tls() (*tls.Config, error) {
	t := &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: cfg.Insecure} //nolint:gosec // the user's explicit choice
	if cfg.CACertFile != "" {
		pem, err := os.ReadFile(cfg.CACertFile)
		if err != nil {
			return nil, fmt.Errorf("cacert_file: %w", err)
		}
		t.RootCAs = x509.NewCertPool()
		if !t.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("cacert_file: %s holds no PEM certificate", cfg.CACertFile)
		}
	}
	if cfg.ClientCertFile != "" {
		pair, err := tls.LoadX509KeyPair(cfg.ClientCertFile, cfg.ClientKeyFile)
		if err != nil {
			return nil, fmt.Errorf("client_cert_file and client_key_file: %w", err)
		}
		t.Certificates = []tls.Certificate{pair}
	}
	return t, nil
}

func newTransport(tlsConfig *tls.Config) *http.Transport {
	return &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		TLSClientConfig:       tlsConfig,
		TLSHandshakeTimeout:   15 * time.Second,
		MaxConnsPerHost:       maxConnections,
		MaxIdleConnsPerHost:   maxConnections,
		IdleConnTimeout:       60 * time.Second,
		ResponseHeaderTimeout: 0, // Config.RequestTimeout covers it
		ForceAttemptHTTP2:     true,
	}
}

// do sends one request that gophercloud has no call for. path is below /v1/, with its query. A nil out ignores the
// answer's body.
func (c *Client) do(ctx context.Context, method, path string, body, out any) error {
	api, err := c.api(ctx)
	if err != nil {
		return err
	}
	opts := &gophercloud.RequestOpts{
		JSONBody: body, JSONResponse: out, OkCodes: []int{http.StatusOK, http.StatusCreated, http.StatusAccepted, http.StatusNoContent},
	}
	_, err = api.Request(ctx, method, api.ServiceURL(path), opts)
	return c.wrap(err)
}

// relists is how often a list is begun anew because it shifted under the pages.
const relists = 3

// errShifted says that the object at which one page ended was gone before the next page was asked for.
var errShifted = errors.New("it changes faster than it can be read")

// list follows all pages of a list; key names the array in the answers. Of `next` only the marker is followed: its host is
// what Ironic was called by, which behind a proxy need not be what we call it, and it lacks most filters of the query.
func list[T any](ctx context.Context, c *Client, path, key string, query url.Values) ([]T, error) {
	for try := 1; ; try++ {
		all, err := listOnce[T](ctx, c, path, key, query)
		if !errors.Is(err, errShifted) || try == relists {
			return all, err
		}
	}
}

func listOnce[T any](ctx context.Context, c *Client, path, key string, query url.Values) ([]T, error) {
	asked := url.Values{}
	maps.Copy(asked, query)
	var all []T
	for marker := ""; ; {
		var page map[string]jsonRaw
		err := c.do(ctx, http.MethodGet, path+"?"+asked.Encode(), nil, &page)
		if marker != "" && IsNotFound(err) {
			return nil, fmt.Errorf("list %s: %w", path, errShifted)
		}
		if err != nil {
			return nil, err
		}
		var items []T
		var next string
		if err := errors.Join(page[key].into(&items), page["next"].into(&next)); err != nil {
			return nil, fmt.Errorf("list %s: %w", path, err)
		}
		all = append(all, items...)
		u, err := url.Parse(next)
		if err != nil {
			return nil, fmt.Errorf("list %s: %w", path, err)
		}
		if marker = u.Query().Get("marker"); marker == "" || len(items) == 0 {
			return all, nil
		}
		asked.Set("marker", marker)
	}
}

// serverNow is the time by the server's clock, as far as its answers have told.
func (c *Client) serverNow() time.Time { return time.Now().Add(time.Duration(c.clock.Load())) }

// setClock notes how far the server's clock is ahead of ours. Only Ironic's own answers count, by their API version: Keystone
// and proxies have clocks of their own. The header has whole seconds; a difference of little more is none.
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

// observed looks at every request: it keeps the server's time, and writes one line of log, never with headers or bodies,
// because both carry secrets. It lets a run that is interrupted wait a moment for the answer to what it has asked to be
// changed: who hangs up does not know what Ironic has done, and nobody would record it.
type observed struct {
	next   http.RoundTripper
	client *Client
}

// RoundTrip sends the request and notes what became of it.
func (o *observed) RoundTrip(r *http.Request) (*http.Response, error) {
	start := time.Now()
	resp, err := o.send(r)
	attrs := []slog.Attr{
		slog.String("method", r.Method), slog.String("path", r.URL.Path), slog.Duration("took", time.Since(start)),
	}
	logger := o.client.cfg.Logger
	if err != nil {
		logger.LogAttrs(r.Context(), slog.LevelDebug, "request to Ironic got no answer", attrs...)
		return resp, err
	}
	o.client.setClock(resp.Header)
	attrs = append(attrs, slog.Int("status", resp.StatusCode), slog.String("request_id", resp.Header.Get("Openstack-Request-Id")))
	logger.LogAttrs(r.Context(), slog.LevelDebug, "request to Ironic", attrs...)
	return resp, nil
}

// send sends a request; one that changes something outlasts an interruption.
func (o *observed) send(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodGet || r.Method == http.MethodHead || r.Context().Err() != nil {
		return o.next.RoundTrip(r)
	}
	later, stop := outlast(r.Context())
	resp, err := o.next.RoundTrip(r.WithContext(later))
	if err != nil {
		stop()
		return resp, err
	}
	resp.Body = &lasting{ReadCloser: resp.Body, stop: stop}
	return resp, nil
}

// lasting is the body of an answer that may be read for as long as its context lasts.
type lasting struct {
	io.ReadCloser
	stop func()
}

// Close ends the context, too.
func (l *lasting) Close() error {
	defer l.stop()
	return l.ReadCloser.Close()
}
