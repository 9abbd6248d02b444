package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/oneview"
)

// Settings are the settings of the clients and of the log.
type Settings struct {
	Getenv  func(string) string
	Version string // of the program

	Ironic  machine.Config
	OneView oneview.Config

	authType     string
	microversion string
	groups       []flagGroup

	logFormat string
	logLevel  slog.Level
}

// ironicFlags declares the flags of the Ironic client. All commands have them.
func (s *Settings) ironicFlags() *pflag.FlagSet {
	flags, i := newFlags(), &s.Ironic
	flags.StringVar(&i.Endpoint, "endpoint", "", "`URL` of Ironic, such as https://ironic.example.com:6385; not needed with Keystone")
	flags.StringVar(&s.authType, "auth-type", "", "`type` of authentication: none, http_basic or keystone; default: depends on the "+
		"other settings")
	flags.StringVar(&i.Username, "username", "", "user `name` for HTTP basic authentication")
	flags.StringVar(&i.Cloud, "cloud", "", "`name` in clouds.yaml, for Keystone (env OS_CLOUD)")
	flags.StringVar(&i.Region, "region", "", "`name` of the region in the service catalog, for Keystone (env OS_REGION_NAME)")
	flags.StringVar(&i.Interface, "interface", "", "`kind` of URL in the service catalog, for Keystone: public, internal or admin "+
		"(env OS_INTERFACE)")
	flags.StringVar(&i.CACertFile, "cacert-file", "", "PEM `file` of the authority that signed Ironic's certificate")
	flags.StringVar(&i.ClientCertFile, "client-cert-file", "", "PEM `file` of a client certificate for Ironic")
	flags.StringVar(&i.ClientKeyFile, "client-key-file", "", "PEM `file` of its key")
	flags.BoolVar(&i.Insecure, "insecure", false, "do not verify Ironic's certificate")
	flags.StringVar(&s.microversion, "microversion", "", "highest `version` of Ironic's API to use, such as 1.82; default: the highest "+
		"that both sides support")
	DurationVar(flags, &i.RequestTimeout, "request-timeout", api.DefaultRequestTimeout, "time-out: `time` for one request")
	DurationVar(flags, &i.APITimeout, "api-timeout", 0, "`time` to wait at the start for Ironic and one conductor; default: no wait")
	DurationVar(flags, &i.PollInterval, "poll-interval", api.DefaultPollInterval, "longest `time` between two polls of a machine")

	FromEnvironment(flags, "endpoint", "METAL_ENDPOINT", "IRONIC_ENDPOINT")
	FromEnvironment(flags, "username", "METAL_USERNAME")
	return flags
}

func (s *Settings) oneviewFlags() *pflag.FlagSet {
	flags, o := newFlags(), &s.OneView
	flags.StringVar(&o.Endpoint, "oneview-endpoint", "", "`URL` of the appliance, such as https://oneview.example.com")
	flags.StringVar(&o.Username, "oneview-username", "", "user `name` in OneView")
	flags.StringVar(&o.Domain, "oneview-domain", "", "login `domain` of the user; default: the appliance's own users")
	flags.IntVar(&o.APIVersion, "oneview-api-version", 0, "highest `X-API-Version` to use; default: the highest that both sides support")
	flags.StringVar(&o.CACertFile, "oneview-cacert-file", "", "PEM `file` of the authority that signed the appliance's certificate")
	flags.BoolVar(&o.Insecure, "oneview-insecure", false, "do not verify the appliance's certificate")

	flags.VisitAll(func(f *pflag.Flag) {
		FromEnvironment(flags, f.Name, strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_")))
	})
	return flags
}

func (s *Settings) logFlags() *pflag.FlagSet {
	flags := newFlags()
	flags.StringVar(&s.logFormat, "log-format", "text", "`format` of the log on standard error: text or json")
	flags.Var((*level)(&s.logLevel), "log-level", "lowest `level` of the log: debug (every request), info, warn or error. "+
		"Default: info for the service; other commands log only if this flag is set")
	return flags
}

// Complete is CompleteIronic for commands that also need OneView.
func (s *Settings) Complete(flags *pflag.FlagSet) error {
	err := s.CompleteIronic(flags)
	s.OneView.Password = s.Getenv("ONEVIEW_PASSWORD")
	return errors.Join(err, s.checkOneView())
}

// CompleteIronic reads missing settings from the environment, and returns an error for wrong and missing ones. It makes no request.
func (s *Settings) CompleteIronic(flags *pflag.FlagSet) error {
	if err := ReadEnvironment(flags, s.Getenv); err != nil {
		return err
	}
	s.Ironic.Password = s.Getenv("METAL_PASSWORD")
	if s.Ironic.Auth = api.AuthType(s.authType); s.Ironic.Auth == "" {
		s.Ironic.Auth = api.ImpliedAuth(s.Ironic.Cloud, s.Ironic.Username, s.Getenv)
	}
	var err error
	if s.microversion != "" {
		if s.Ironic.Microversion, err = api.ParseMicroversion(s.microversion); err != nil {
			err = fmt.Errorf("--microversion: %w", err)
		}
	}
	return errors.Join(err, s.checkIronic(), s.checkValues())
}

func (s *Settings) checkIronic() error {
	var wrong []error
	i := &s.Ironic
	if !slices.Contains([]api.AuthType{api.AuthNone, api.AuthHTTPBasic, api.AuthKeystone}, i.Auth) {
		wrong = append(wrong, fmt.Errorf("--auth-type is %q; it must be none, http_basic or keystone", i.Auth))
	}
	if !slices.Contains([]string{"", "public", "internal", "admin"}, i.Interface) {
		wrong = append(wrong, fmt.Errorf("--interface is %q; it must be public, internal or admin", i.Interface))
	}
	if i.Auth == api.AuthKeystone && i.Cloud == "" && !api.HasCloud(s.Getenv) {
		wrong = append(wrong, errors.New("set OS_CLOUD, or --cloud, to a name in clouds.yaml, or OS_AUTH_URL and the other OS_* variables"))
	}
	fault := ironic.URLFault(i.Endpoint, "http", "https")
	u, err := url.Parse(i.Endpoint)
	switch {
	case i.Endpoint == "" && i.Auth == api.AuthKeystone:
	case i.Endpoint == "":
		wrong = append(wrong, errors.New("set METAL_ENDPOINT, or --endpoint, to the URL of Ironic, such as "+
			"https://ironic.example.com:6385"))
	case fault != "":
		wrong = append(wrong, fmt.Errorf("METAL_ENDPOINT, or --endpoint, %s", fault))
	case err != nil || u.User != nil:
		wrong = append(wrong, errors.New("METAL_ENDPOINT, or --endpoint, must be a URL without credentials, such as "+
			"https://ironic.example.com:6385"))
	}
	if i.Auth == api.AuthHTTPBasic && i.Username == "" {
		wrong = append(wrong, errors.New("set METAL_USERNAME, or --username, to a user of Ironic"))
	}
	if i.Auth == api.AuthHTTPBasic && i.Password == "" {
		wrong = append(wrong, errors.New("set METAL_PASSWORD to the password of "+cmp.Or(i.Username, "the user")))
	}
	if strings.TrimSpace(i.Password) != i.Password {
		wrong = append(wrong, errors.New("METAL_PASSWORD begins or ends with white space, such as a line break: remove it"))
	}
	if (i.ClientCertFile == "") != (i.ClientKeyFile == "") {
		wrong = append(wrong, errors.New("set both --client-cert-file and --client-key-file, or neither"))
	}
	return errors.Join(wrong...)
}

// checkOneView returns the missing settings of the OneView client. The client itself checks the values.
func (s *Settings) checkOneView() error {
	var missing []error
	if s.OneView.Endpoint == "" {
		missing = append(missing, errors.New("set ONEVIEW_ENDPOINT, or --oneview-endpoint, to the URL of the appliance, such as "+
			"https://oneview.example.com"))
	}
	if s.OneView.Username == "" || s.OneView.Password == "" {
		missing = append(missing, errors.New("set ONEVIEW_USERNAME and ONEVIEW_PASSWORD to a user of the appliance"))
	} else if strings.TrimSpace(s.OneView.Password) != s.OneView.Password {
		missing = append(missing, errors.New("ONEVIEW_PASSWORD begins or ends with white space, such as a line break: remove it"))
	}
	return errors.Join(missing...)
}

// checkValues returns the errors in the other flags of all commands.
func (s *Settings) checkValues() error {
	var wrong error
	if s.logFormat != "text" && s.logFormat != "json" {
		wrong = fmt.Errorf("--log-format is %q; it must be text or json", s.logFormat)
	}
	return errors.Join(wrong, Positive("request-timeout", s.Ironic.RequestTimeout), NotNegative("api-timeout", s.Ironic.APITimeout),
		Positive("poll-interval", s.Ironic.PollInterval))
}

// Logger returns the log. A command that is not a service logs only if the level is set.
func (s *Settings) Logger(stderr io.Writer, service, levelGiven bool) *slog.Logger {
	options := &slog.HandlerOptions{Level: s.logLevel}
	switch {
	case !service && !levelGiven:
		return slog.New(slog.DiscardHandler)
	case s.logFormat == "json":
		return slog.New(slog.NewJSONHandler(stderr, options))
	}
	return slog.New(slog.NewTextHandler(stderr, options))
}

// IronicName names Ironic in messages.
func (s *Settings) IronicName() string {
	switch {
	case s.Ironic.Endpoint != "":
		return "Ironic at " + s.Ironic.Endpoint
	case s.Ironic.Cloud != "" || s.Getenv("OS_CLOUD") != "":
		return "Ironic of cloud " + cmp.Or(s.Ironic.Cloud, s.Getenv("OS_CLOUD"))
	}
	return "Ironic"
}
