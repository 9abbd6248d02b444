package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/oneview"
)

// Defaults of the provisioning limit, as of the Terraform provider.
const (
	defaultMaxHosts = 20
	stuckAfter      = 45 * time.Minute
	exempt          = "*virtual-media"
)

// goodbye is how long logging out of the appliance may take.
const goodbye = 5 * time.Second

// settings are the flags that all commands have: how to reach both sides, and how to log.
type settings struct {
	ironic    ironic.Config
	oneview   oneview.Config
	maxHosts  int
	logFormat string
	logLevel  slog.Level
}

// declare adds the flags to a command. What is not given is taken from the environment by complete.
func (s *settings) declare(flags *flag.FlagSet) {
	i, o := &s.ironic, &s.oneview
	flags.StringVar(&i.Endpoint, "endpoint", "", "`URL` of Ironic (METAL_ENDPOINT)")
	flags.StringVar(&i.Username, "username", "", "user `name` for HTTP basic authentication (METAL_USERNAME); the password is METAL_PASSWORD")
	flags.StringVar(&i.Cloud, "cloud", "", "`name` in clouds.yaml, for Keystone (OS_CLOUD)")
	flags.StringVar(&i.Region, "region", "", "region `name` in the service catalog, for Keystone (OS_REGION_NAME)")
	flags.StringVar(&i.CACertFile, "cacert-file", "", "PEM `file` of the authority that signed Ironic's certificate")
	flags.StringVar(&i.ClientCertFile, "client-cert-file", "", "PEM `file` of a client certificate for Ironic")
	flags.StringVar(&i.ClientKeyFile, "client-key-file", "", "PEM `file` of its key")
	flags.BoolVar(&i.Insecure, "insecure", false, "do not verify Ironic's certificate")

	flags.StringVar(&o.Endpoint, "oneview-endpoint", "", "`URL` of the OneView appliance (ONEVIEW_ENDPOINT)")
	flags.StringVar(&o.Username, "oneview-username", "", "user `name` in OneView (ONEVIEW_USERNAME); the password is ONEVIEW_PASSWORD")
	flags.StringVar(&o.Domain, "oneview-domain", "", "login `domain` of the user (ONEVIEW_DOMAIN); without one it is the appliance's own")
	flags.IntVar(&o.APIVersion, "oneview-api-version", 0, "highest X-API-Version to speak (ONEVIEW_API_VERSION); 0: the highest that both sides know")
	flags.StringVar(&o.CACertFile, "oneview-cacert-file", "", "PEM `file` of the authority that signed the appliance's certificate (ONEVIEW_CACERT_FILE)")
	flags.BoolVar(&o.Insecure, "oneview-insecure", false, "do not verify the appliance's certificate (ONEVIEW_INSECURE)")

	flags.StringVar(&s.logFormat, "log-format", "text", "`text|json`: how the log on standard error is written")
	flags.Var(level{&s.logLevel}, "log-level", "`debug|info|warn|error`: from which level on is logged; debug has every request (default info)")
}

// complete takes from the environment what the flags did not give, and looks whether all is there that is needed. It makes
// no request.
func (s *settings) complete(flags *flag.FlagSet, getenv func(string) string) error {
	given := map[string]bool{}
	flags.Visit(func(f *flag.Flag) { given[f.Name] = true })
	var wrong []error
	for _, setting := range []struct{ flag, variable string }{
		{"endpoint", "IRONIC_ENDPOINT"},
		{"endpoint", "METAL_ENDPOINT"}, // the last one wins
		{"username", "METAL_USERNAME"},
		{"cloud", "OS_CLOUD"},
		{"region", "OS_REGION_NAME"},
		{"oneview-endpoint", "ONEVIEW_ENDPOINT"},
		{"oneview-username", "ONEVIEW_USERNAME"},
		{"oneview-domain", "ONEVIEW_DOMAIN"},
		{"oneview-api-version", "ONEVIEW_API_VERSION"},
		{"oneview-cacert-file", "ONEVIEW_CACERT_FILE"},
		{"oneview-insecure", "ONEVIEW_INSECURE"},
		{"max-hosts", "MAX_CONCURRENT_PROVISIONING_HOSTS"},
	} {
		value := getenv(setting.variable)
		if value == "" || given[setting.flag] || flags.Lookup(setting.flag) == nil {
			continue
		}
		if flags.Set(setting.flag, value) != nil {
			wrong = append(wrong, fmt.Errorf("%s is %q, which is no value for -%s", setting.variable, value, setting.flag))
		}
	}
	s.ironic.Password, s.oneview.Password = getenv("METAL_PASSWORD"), getenv("ONEVIEW_PASSWORD")
	s.ironic.Auth = s.auth(getenv)
	return errors.Join(append(wrong, s.missing()...)...)
}

// auth is the way to authenticate that the settings stand for.
func (s *settings) auth(getenv func(string) string) ironic.AuthType {
	switch {
	case s.ironic.Cloud != "" || getenv("OS_AUTH_URL") != "":
		return ironic.AuthKeystone
	case s.ironic.Username != "":
		return ironic.AuthHTTPBasic
	}
	return ironic.AuthNone
}

// missing says what is needed and not there.
func (s *settings) missing() []error {
	var missing []error
	if s.ironic.Endpoint == "" && s.ironic.Auth != ironic.AuthKeystone {
		missing = append(missing, errors.New("set METAL_ENDPOINT, or -endpoint, to the URL of Ironic, such as https://ironic.example.com:6385"))
	}
	if s.ironic.Auth == ironic.AuthHTTPBasic && s.ironic.Password == "" {
		missing = append(missing, errors.New("set METAL_PASSWORD to the password of "+s.ironic.Username))
	}
	if (s.ironic.ClientCertFile == "") != (s.ironic.ClientKeyFile == "") {
		missing = append(missing, errors.New("-client-cert-file and -client-key-file go together"))
	}
	if s.oneview.Endpoint == "" {
		missing = append(missing, errors.New("set ONEVIEW_ENDPOINT, or -oneview-endpoint, to the URL of the appliance, such as https://oneview.example.com"))
	}
	if s.oneview.Username == "" || s.oneview.Password == "" {
		missing = append(missing, errors.New("set ONEVIEW_USERNAME and ONEVIEW_PASSWORD to a user of the appliance"))
	}
	if s.logFormat != "text" && s.logFormat != "json" {
		missing = append(missing, fmt.Errorf("-log-format is %q, and must be text or json", s.logFormat))
	}
	return missing
}

// open makes the pool and the log. close logs out of the appliance.
func (s *settings) open(c *command) (pool *oneview.Pool, log *slog.Logger, closePool func(context.Context), err error) {
	options := &slog.HandlerOptions{Level: s.logLevel}
	log = slog.New(slog.NewTextHandler(c.stderr, options))
	if s.logFormat == "json" {
		log = slog.New(slog.NewJSONHandler(c.stderr, options))
	}
	agent := "metal-oneview/" + version
	s.ironic.Logger, s.ironic.UserAgent = log, agent
	s.ironic.Limit.Max, s.ironic.Limit.StuckAfter = s.maxHosts, stuckAfter
	s.ironic.Limit.Coordination, s.ironic.Limit.Exempt = ironic.CoordinationIronic, []string{exempt}
	s.oneview.Logger, s.oneview.UserAgent, s.oneview.Called = log, agent, called
	client, err := oneview.New(s.oneview)
	if err != nil {
		return nil, nil, nil, fmt.Errorf("OneView: %w", err)
	}
	closePool = func(ctx context.Context) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), goodbye)
		defer cancel()
		if err := client.Close(ctx); err != nil {
			log.DebugContext(ctx, "not logged out of OneView; the session ends by itself", "error", err)
		}
	}
	return &oneview.Pool{OneView: client, Ironic: ironic.New(s.ironic)}, log, closePool, nil
}

// begin makes everything that a command needs from its flags. If done is true the command is over.
func (c *command) begin(flags *flag.FlagSet, about string, s *settings, args []string) (work *work, code int, done bool) {
	s.declare(flags)
	if code, done := c.parse(flags, about, args); done {
		return nil, code, true
	}
	if err := s.complete(flags, c.getenv); err != nil {
		return nil, c.misused(err), true
	}
	pool, log, closePool, err := s.open(c)
	if err != nil {
		return nil, c.misused(err), true
	}
	return newWork(c, pool, log, closePool), exitDone, false
}

// exitCode says how a run went.
func exitCode(err error, tally oneview.Tally, dryRun bool) int {
	switch {
	case err != nil:
		return exitError
	case tally.Failed > 0:
		return exitNodesFailed
	case dryRun && tally.Changed > 0:
		return exitWouldChange
	}
	return exitDone
}

// positive returns an error unless a flag is more than zero.
func positive[T cmp.Ordered](name string, value T) error {
	var zero T
	if value <= zero {
		return fmt.Errorf("-%s must be more than 0", name)
	}
	return nil
}
