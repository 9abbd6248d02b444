package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"slices"

	"github.com/spf13/pflag"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/oneview"
)

// settings are the settings of the clients and of the log.
type settings struct {
	getenv func(string) string

	ironic       machine.Config
	authType     string
	microversion string
	oneview      oneview.Config

	logFormat string
	logLevel  slog.Level
}

// ironicFlags declares the flags of the Ironic client. All commands have them.
func (s *settings) ironicFlags() *pflag.FlagSet {
	flags, i := newFlags(), &s.ironic
	flags.StringVar(&i.Endpoint, "endpoint", "", "`URL` of Ironic, such as https://ironic.example.com:6385; not needed with Keystone")
	flags.StringVar(&s.authType, "auth-type", "", "`type` of authentication: none, http_basic or keystone; default: depends on the other settings")
	flags.StringVar(&i.Username, "username", "", "user `name` for HTTP basic authentication")
	flags.StringVar(&i.Cloud, "cloud", "", "`name` in clouds.yaml, for Keystone (env OS_CLOUD)")
	flags.StringVar(&i.Region, "region", "", "`name` of the region in the service catalog, for Keystone (env OS_REGION_NAME)")
	flags.StringVar(&i.Interface, "interface", "", "`kind` of URL in the service catalog, for Keystone: public, internal or admin (env OS_INTERFACE)")
	flags.StringVar(&i.CACertFile, "cacert-file", "", "PEM `file` of the authority that signed Ironic's certificate")
	flags.StringVar(&i.ClientCertFile, "client-cert-file", "", "PEM `file` of a client certificate for Ironic")
	flags.StringVar(&i.ClientKeyFile, "client-key-file", "", "PEM `file` of its key")
	flags.BoolVar(&i.Insecure, "insecure", false, "do not verify Ironic's certificate")
	flags.StringVar(&s.microversion, "microversion", "", "highest `version` of Ironic's API to use, such as 1.82; default: the highest that both sides support")
	durationVar(flags, &i.RequestTimeout, "request-timeout", api.DefaultRequestTimeout, "time-out: `time` for one request")
	durationVar(flags, &i.APITimeout, "api-timeout", 0, "`time` to wait at the start for Ironic and one conductor; default: no wait")
	durationVar(flags, &i.PollInterval, "poll-interval", api.DefaultPollInterval, "longest `time` between two polls of a machine")

	fromEnvironment(flags, "endpoint", "METAL_ENDPOINT", "IRONIC_ENDPOINT")
	fromEnvironment(flags, "username", "METAL_USERNAME")
	return flags
}

// oneviewFlags declares the flags of the OneView client.
func (s *settings) oneviewFlags() *pflag.FlagSet {
	flags, o := newFlags(), &s.oneview
	flags.StringVar(&o.Endpoint, "oneview-endpoint", "", "`URL` of the appliance, such as https://oneview.example.com")
	flags.StringVar(&o.Username, "oneview-username", "", "user `name` in OneView")
	flags.StringVar(&o.Domain, "oneview-domain", "", "login `domain` of the user; default: the appliance's own users")
	flags.IntVar(&o.APIVersion, "oneview-api-version", 0, "highest `X-API-Version` to use; default: the highest that both sides support")
	flags.StringVar(&o.CACertFile, "oneview-cacert-file", "", "PEM `file` of the authority that signed the appliance's certificate")
	flags.BoolVar(&o.Insecure, "oneview-insecure", false, "do not verify the appliance's certificate")

	fromEnvironment(flags, "oneview-endpoint", "ONEVIEW_ENDPOINT")
	fromEnvironment(flags, "oneview-username", "ONEVIEW_USERNAME")
	fromEnvironment(flags, "oneview-domain", "ONEVIEW_DOMAIN")
	fromEnvironment(flags, "oneview-api-version", "ONEVIEW_API_VERSION")
	fromEnvironment(flags, "oneview-cacert-file", "ONEVIEW_CACERT_FILE")
	fromEnvironment(flags, "oneview-insecure", "ONEVIEW_INSECURE")
	return flags
}

// logFlags declares the flags of the log.
func (s *settings) logFlags() *pflag.FlagSet {
	flags := newFlags()
	flags.StringVar(&s.logFormat, "log-format", "text", "`format` of the log on standard error: text or json")
	flags.Var((*level)(&s.logLevel), "log-level", "lowest `level` of the log: debug (every request), info, warn or error. "+
		"Default: info for the service; other commands log only if this flag is set")
	return flags
}

// complete is completeIronic for commands that also need OneView.
func (s *settings) complete(flags *pflag.FlagSet) error {
	err := s.completeIronic(flags)
	s.oneview.Password = s.getenv("ONEVIEW_PASSWORD")
	return errors.Join(err, s.checkOneView())
}

// completeIronic reads missing settings from the environment, and returns an error for wrong and missing ones. It makes no request.
func (s *settings) completeIronic(flags *pflag.FlagSet) error {
	if err := readEnvironment(flags, s.getenv); err != nil {
		return err
	}
	s.ironic.Password = s.getenv("METAL_PASSWORD")
	if s.ironic.Auth = api.AuthType(s.authType); s.ironic.Auth == "" {
		s.ironic.Auth = api.ImpliedAuth(s.ironic.Cloud, s.ironic.Username, s.getenv)
	}
	var err error
	if s.microversion != "" {
		if s.ironic.Microversion, err = api.ParseMicroversion(s.microversion); err != nil {
			err = fmt.Errorf("--microversion: %w", err)
		}
	}
	return errors.Join(err, s.checkIronic(), s.checkValues())
}

// checkIronic returns the errors in the settings of the Ironic client.
func (s *settings) checkIronic() error {
	var wrong []error
	i := &s.ironic
	if !slices.Contains([]api.AuthType{api.AuthNone, api.AuthHTTPBasic, api.AuthKeystone}, i.Auth) {
		wrong = append(wrong, fmt.Errorf("--auth-type is %q; it must be none, http_basic or keystone", i.Auth))
	}
	if !slices.Contains([]string{"", "public", "internal", "admin"}, i.Interface) {
		wrong = append(wrong, fmt.Errorf("--interface is %q; it must be public, internal or admin", i.Interface))
	}
	if i.Auth == api.AuthKeystone && i.Cloud == "" && !api.HasCloud(s.getenv) {
		wrong = append(wrong, errors.New("set OS_CLOUD, or --cloud, to a name in clouds.yaml, or OS_AUTH_URL and the other OS_* variables"))
	}
	u, err := url.Parse(i.Endpoint)
	switch {
	case i.Endpoint == "" && i.Auth == api.AuthKeystone:
	case i.Endpoint == "":
		wrong = append(wrong, errors.New("set METAL_ENDPOINT, or --endpoint, to the URL of Ironic, such as https://ironic.example.com:6385"))
	case err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Hostname() == "" || u.User != nil:
		wrong = append(wrong, errors.New("METAL_ENDPOINT, or --endpoint, must be a URL without credentials, such as https://ironic.example.com:6385"))
	}
	if i.Auth == api.AuthHTTPBasic && i.Username == "" {
		wrong = append(wrong, errors.New("set METAL_USERNAME, or --username, to a user of Ironic"))
	}
	if i.Auth == api.AuthHTTPBasic && i.Password == "" {
		wrong = append(wrong, errors.New("set METAL_PASSWORD to the password of "+cmp.Or(i.Username, "the user")))
	}
	if (i.ClientCertFile == "") != (i.ClientKeyFile == "") {
		wrong = append(wrong, errors.New("set both --client-cert-file and --client-key-file, or neither"))
	}
	return errors.Join(wrong...)
}

// checkOneView returns the missing settings of the OneView client. The client itself checks the values.
func (s *settings) checkOneView() error {
	var missing []error
	if s.oneview.Endpoint == "" {
		missing = append(missing, errors.New("set ONEVIEW_ENDPOINT, or --oneview-endpoint, to the URL of the appliance, such as https://oneview.example.com"))
	}
	if s.oneview.Username == "" || s.oneview.Password == "" {
		missing = append(missing, errors.New("set ONEVIEW_USERNAME and ONEVIEW_PASSWORD to a user of the appliance"))
	}
	return errors.Join(missing...)
}

// checkValues returns the errors in the other flags of all commands.
func (s *settings) checkValues() error {
	var wrong error
	if s.logFormat != "text" && s.logFormat != "json" {
		wrong = fmt.Errorf("--log-format is %q; it must be text or json", s.logFormat)
	}
	return errors.Join(wrong, positive("request-timeout", s.ironic.RequestTimeout), notNegative("api-timeout", s.ironic.APITimeout),
		positive("poll-interval", s.ironic.PollInterval))
}

// logger returns the log. A command that is not a service logs only if the level is set.
func (s *settings) logger(stderr io.Writer, service, levelGiven bool) *slog.Logger {
	options := &slog.HandlerOptions{Level: s.logLevel}
	switch {
	case !service && !levelGiven:
		return slog.New(slog.DiscardHandler)
	case s.logFormat == "json":
		return slog.New(slog.NewJSONHandler(stderr, options))
	}
	return slog.New(slog.NewTextHandler(stderr, options))
}

// ironicName names Ironic in messages.
func (s *settings) ironicName() string {
	switch {
	case s.ironic.Endpoint != "":
		return "Ironic at " + s.ironic.Endpoint
	case s.ironic.Cloud != "" || s.getenv("OS_CLOUD") != "":
		return "Ironic of cloud " + cmp.Or(s.ironic.Cloud, s.getenv("OS_CLOUD"))
	}
	return "Ironic"
}
