package oneview

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
)

// Defaults of Config.
const (
	DefaultRequestTimeout = 60 * time.Second
	DefaultPollInterval   = time.Second
	DefaultPatience       = 2 * time.Minute
)

// Versions of the API that this package speaks, from OneView 3.00 on. What happens on top of testedVersion nobody has looked
// at, so an appliance that is newer is asked to speak that one (reference oneview.md 1.8).
const (
	oldestVersion = 300
	testedVersion = 8600
)

// Config is all that a Client needs.
type Config struct {
	Endpoint           string // URL of the appliance, such as https://oneview.example.com
	Username, Password string
	Domain             string // authLoginDomain; empty: the appliance's own users (LOCAL)

	// APIVersion is the highest X-API-Version to speak; zero: the highest that the appliance and this package know.
	APIVersion int

	CACertFile string // PEM file of the authority that signed the appliance's certificate; empty: those of the system
	Insecure   bool   // do not verify the appliance's certificate

	RequestTimeout time.Duration // of one HTTP request; zero: DefaultRequestTimeout
	PollInterval   time.Duration // between the first two looks at a task; they get rarer up to ten times that. Zero: DefaultPollInterval
	// Patience is how long an appliance is given that is locked, overloaded or restarting, and how long the outcome of a
	// request whose answer was lost is looked for. Zero: DefaultPatience.
	Patience time.Duration

	Transport http.RoundTripper // nil: a transport made from the TLS settings above
	Logger    *slog.Logger      // nil: silent. Bodies and headers are never logged
	UserAgent string

	// Called is what the user calls a setting, such as cacert_file, in messages; nil: as the provider does.
	Called func(setting string) string

	// Unknown names what of the configuration is not known yet (Terraform plans with such). Every use of the Client is
	// then an ironic.UnknownConfigError.
	Unknown string
}

// New returns a Client, or says what is wrong with the configuration. It makes no request.
func New(cfg Config) (*Client, error) {
	if cfg.RequestTimeout == 0 {
		cfg.RequestTimeout = DefaultRequestTimeout
	}
	if cfg.PollInterval == 0 {
		cfg.PollInterval = DefaultPollInterval
	}
	if cfg.Patience == 0 {
		cfg.Patience = DefaultPatience
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	c := &Client{cfg: cfg, session: session{busy: make(chan struct{}, 1)}}
	if cfg.Unknown != "" {
		return c, nil
	}
	base, err := cfg.base()
	if err != nil {
		return nil, err
	}
	transport := cfg.Transport
	if transport == nil {
		if transport, err = cfg.transport(); err != nil {
			return nil, err
		}
	}
	c.base, c.http = base, &http.Client{
		Transport: transport,
		Timeout:   cfg.RequestTimeout,
		// What the appliance says is never followed anywhere: a token must not travel to another host.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return c, nil
}

// called is what the user calls a setting.
func (cfg Config) called(setting string) string {
	if cfg.Called == nil {
		return setting
	}
	return cfg.Called(setting)
}

// base checks the configuration and returns the URL that paths such as /rest/version are put behind.
func (cfg Config) base() (*url.URL, error) {
	base, err := url.Parse(strings.TrimSpace(cfg.Endpoint))
	if err != nil || base.Host == "" || (base.Scheme != "https" && base.Scheme != "http") {
		return nil, fmt.Errorf("%s: it must be the URL of the OneView appliance, such as https://oneview.example.com", cfg.called("endpoint"))
	}
	if base.User != nil || base.RawQuery != "" || base.Fragment != "" {
		return nil, fmt.Errorf("%s: it must be a URL without user, query and fragment; give username and password as such", cfg.called("endpoint"))
	}
	base.Path = strings.TrimSuffix(strings.TrimRight(base.Path, "/"), "/rest")
	if cfg.Username == "" || cfg.Password == "" {
		return nil, errors.New("username and password: both are required to log in to the OneView appliance")
	}
	if cfg.APIVersion != 0 && cfg.APIVersion < oldestVersion {
		return nil, fmt.Errorf("%s: %d is too old, it must be at least %d", cfg.called("api_version"), cfg.APIVersion, oldestVersion)
	}
	if cfg.Insecure && cfg.CACertFile != "" {
		return nil, fmt.Errorf("%s and %s: certificates are either verified or not; set only one of the two", cfg.called("insecure"), cfg.called("cacert_file"))
	}
	return base, nil
}

// transport makes a transport from the TLS settings. Certificates are verified unless the user has said otherwise.
func (cfg Config) transport() (*http.Transport, error) {
	settings := &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: cfg.Insecure} //nolint:gosec // the user's explicit choice
	if cfg.CACertFile != "" {
		pem, err := os.ReadFile(cfg.CACertFile)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", cfg.called("cacert_file"), err)
		}
		settings.RootCAs = x509.NewCertPool()
		if !settings.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("%s: %s holds no PEM certificate", cfg.called("cacert_file"), cfg.CACertFile)
		}
	}
	return &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		TLSClientConfig:     settings,
		TLSHandshakeTimeout: 15 * time.Second,
		MaxConnsPerHost:     maxConnections,
		MaxIdleConnsPerHost: maxConnections,
		IdleConnTimeout:     60 * time.Second,
		ForceAttemptHTTP2:   true,
	}, nil
}

// maxConnections caps what one process opens to an appliance.
const maxConnections = 8

// known answers the use of a client whose configuration is not complete yet.
func (cfg Config) known() error {
	if cfg.Unknown != "" {
		return &ironic.UnknownConfigError{Attribute: cfg.Unknown}
	}
	return nil
}
