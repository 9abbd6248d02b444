package oneview

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/rest"
)

// Defaults of Config.
const (
	defaultRequestTimeout = 60 * time.Second
	DefaultPollInterval   = time.Second
	DefaultPatience       = 2 * time.Minute
)

// Versions of the API that this package supports, from OneView 3.00 on. Versions above testedVersion are untested, so the client
// uses testedVersion with a newer appliance (reference/oneview.md#api-versions).
const (
	oldestVersion = 300
	testedVersion = 8600
)

// Config is the configuration of a Client.
type Config struct {
	Endpoint           string // URL of the appliance, such as https://oneview.example.com
	Username, Password string
	Domain             string // authLoginDomain; empty: the appliance's own users (LOCAL)

	// APIVersion is the highest X-API-Version to use; zero: the highest that the appliance and this package support.
	APIVersion int

	CACertFile string // PEM file of the authority that signed the appliance's certificate; empty: those of the system
	Insecure   bool   // do not verify the appliance's certificate

	RequestTimeout time.Duration // of one HTTP request; zero: defaultRequestTimeout
	PollInterval   time.Duration // between the first two polls of a task; it grows up to ten times that. Zero: DefaultPollInterval
	// Patience is how long the client waits for an appliance that is locked, overloaded or restarting, and how long callers search
	// for the result of a request whose answer was lost. Zero: DefaultPatience.
	Patience time.Duration

	Transport http.RoundTripper // nil: a transport made from the TLS settings above
	// nil: only those of this configuration. The client removes them from the appliance's texts, and adds its own
	Secrets   *rest.Secrets
	Logger    *slog.Logger // nil: silent. Bodies and headers are never logged
	UserAgent string

	// Called returns the name of a setting, such as cacert_file, in messages; nil: the provider's names.
	Called func(setting string) string

	// Unknown names the settings that are not known yet: Terraform may plan with unknown values. Every use of the Client then returns an
	// error of rest.KindUnknownConfig.
	Unknown string
}

// New returns a Client, or an error if the configuration is invalid. It makes no request.
func New(cfg Config) (*Client, error) {
	cfg.RequestTimeout = cmp.Or(cfg.RequestTimeout, defaultRequestTimeout)
	cfg.PollInterval = cmp.Or(cfg.PollInterval, DefaultPollInterval)
	cfg.Patience = cmp.Or(cfg.Patience, DefaultPatience)
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Secrets == nil {
		cfg.Secrets = &rest.Secrets{}
	}
	c := &Client{cfg: cfg, session: session{busy: make(chan struct{}, 1)}}
	cfg.Secrets.Hide(cfg.Password)
	if cfg.Unknown != "" {
		return c, nil
	}
	base, err := cfg.base()
	if err != nil {
		return nil, err
	}
	transport := cfg.Transport
	if transport == nil {
		if transport, err = (rest.TLS{CACertFile: cfg.CACertFile, Insecure: cfg.Insecure, Called: cfg.Called}).Transport(); err != nil {
			return nil, err
		}
	}
	c.base, c.http = base, rest.NewClient(transport, cfg.RequestTimeout)
	return c, nil
}

// called returns the user's name of a setting.
func (cfg Config) called(setting string) string {
	if cfg.Called == nil {
		return setting
	}
	return cfg.Called(setting)
}

// base checks the configuration and returns the URL to which the client appends paths such as /rest/version.
func (cfg Config) base() (*url.URL, error) {
	base, err := url.Parse(strings.TrimSpace(cfg.Endpoint))
	if err != nil || base.Host == "" || (base.Scheme != "https" && base.Scheme != "http") {
		return nil, fmt.Errorf("%s: it must be the URL of the OneView appliance, such as https://oneview.example.com",
			cfg.called("endpoint"))
	}
	if base.User != nil || base.RawQuery != "" || base.Fragment != "" {
		return nil, fmt.Errorf("%s: it must be a URL without user, query and fragment; give username and password as such",
			cfg.called("endpoint"))
	}
	base.Path = strings.TrimSuffix(strings.TrimRight(base.Path, "/"), "/rest")
	if cfg.Username == "" || cfg.Password == "" {
		return nil, errors.New("username and password: both are required to log in to the OneView appliance")
	}
	if cfg.APIVersion != 0 && cfg.APIVersion < oldestVersion {
		return nil, fmt.Errorf("%s: %d is too old, it must be at least %d", cfg.called("api_version"), cfg.APIVersion, oldestVersion)
	}
	if cfg.Insecure && cfg.CACertFile != "" {
		return nil, fmt.Errorf("%s and %s: certificates are either verified or not; set only one of the two", cfg.called("insecure"),
			cfg.called("cacert_file"))
	}
	return base, nil
}

func (cfg Config) known() error {
	if cfg.Unknown != "" {
		return rest.UnknownConfig(cfg.Unknown)
	}
	return nil
}
