package api

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack/baremetal/httpbasic"
	"github.com/gophercloud/gophercloud/v2/openstack/baremetal/noauth"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/rest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/cloudconfig"
)

// Service returns the service client to send requests with. On first use it connects: it reads credentials and certificates, waits for
// Keystone and the API, and negotiates the microversion. After a failure the next use connects again.
func (c *Conn) Service(ctx context.Context) (*gophercloud.ServiceClient, error) {
	if c.cfg.Unknown != "" {
		return nil, rest.UnknownConfig(c.cfg.Unknown)
	}
	if service := c.connected(); service != nil {
		return service, nil
	}
	unlock, err := c.Lock(ctx, "connection") // not mu: a caller must be able to stop waiting
	if err != nil {
		return nil, err
	}
	defer unlock()
	if service := c.connected(); service != nil {
		return service, nil
	}
	service, server, err := c.await(ctx)
	if err != nil {
		return nil, err
	}
	version := server
	if c.cfg.Microversion != 0 {
		version = min(version, c.cfg.Microversion)
	}
	service.Microversion = min(version, newest).String()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.server, c.service = server, service
	return service, nil
}

// await connects and reads the server's versions. Within Config.APITimeout it repeats what may succeed later, and waits until Keystone and
// Ironic answer and a conductor serves at least one driver. It writes to the log what it waits for.
func (c *Conn) await(ctx context.Context) (service *gophercloud.ServiceClient, server Microversion, err error) {
	deadline := time.Now().Add(c.cfg.APITimeout)
	var told time.Time
	for {
		if service == nil {
			service, err = c.connect(ctx)
		}
		if err == nil {
			server, err = c.started(ctx, service)
		}
		wait := min(c.cfg.PollInterval, time.Until(deadline))
		if err == nil || wait <= 0 || !mayStart(err) {
			return service, server, err
		}
		if time.Since(told) >= silentFor {
			told = time.Now()
			c.tell(ctx, fmt.Sprintf("%v; waiting for it, for at most %s more (api_timeout)", err, time.Until(deadline).Round(time.Second)))
		}
		if err := rest.Sleep(ctx, wait); err != nil {
			return nil, 0, err
		}
		err = nil
	}
}

// started reads the server's versions, and, if the client is to wait for a start, whether a conductor runs.
func (c *Conn) started(ctx context.Context, service *gophercloud.ServiceClient) (Microversion, error) {
	version, err := c.serverVersion(ctx, service)
	if err == nil && c.cfg.APITimeout > 0 {
		err = c.anyDriver(ctx, service, version)
	}
	return version, err
}

// mayStart reports whether a failure to connect may pass when servers have started: wrong settings and credentials do not.
func mayStart(err error) bool {
	var redirect *rest.RedirectError
	var status *StatusError
	switch stage := StageOf(err); {
	case errors.As(err, &redirect), stage == AtCatalog, stage == AtSettings, IsUntrusted(err):
		return false
	case errors.As(err, &status):
		return status.Status != http.StatusUnauthorized && status.Status != http.StatusForbidden && status.Status != http.StatusBadRequest
	}
	return true
}

// serverVersion reads the highest version from /v1, which needs no credentials.
func (c *Conn) serverVersion(ctx context.Context, service *gophercloud.ServiceClient) (Microversion, error) {
	var answer struct {
		Version struct {
			Highest string `json:"version"`
		} `json:"version"`
	}
	_, err := service.Get(ctx, service.Endpoint, &answer, &gophercloud.RequestOpts{OkCodes: []int{http.StatusOK}})
	if err != nil {
		return 0, c.endpointError(service, c.Wrap(ctx, err))
	}
	version, err := ParseMicroversion(answer.Version.Highest)
	if err != nil {
		return 0, c.endpointError(service, errors.New("the answer contains no API version"))
	}
	return version, nil
}

// anyDriver returns an error unless a conductor has registered a driver. Without a driver Ironic accepts no operation. An Ironic that does
// not let the user see its drivers is up, too.
func (c *Conn) anyDriver(ctx context.Context, service *gophercloud.ServiceClient, version Microversion) error {
	var answer struct {
		Drivers []jsonRaw `json:"drivers"`
	}
	headers := map[string]string{"X-OpenStack-Ironic-API-Version": min(version, newest).String()}
	_, err := service.Get(ctx, service.ServiceURL("drivers"), &answer, &gophercloud.RequestOpts{MoreHeaders: headers})
	err = c.Wrap(ctx, err)
	var status *StatusError
	if errors.As(err, &status) && !status.Foreign && status.Status != http.StatusUnauthorized && !IsTransient(err) {
		return nil
	}
	if err == nil && len(answer.Drivers) == 0 {
		err = errors.New("no conductor is running: Ironic offers no driver")
	}
	if err != nil {
		return c.endpointError(service, err)
	}
	return nil
}

// connect prepares a service client for the configured way to authenticate. Only Keystone sends requests here.
func (c *Conn) connect(ctx context.Context) (*gophercloud.ServiceClient, error) {
	auth, endpoint, user, password := c.cfg.Auth, c.cfg.Endpoint, c.cfg.Username, c.cfg.Password
	cloud := &cloudconfig.Cloud{}
	if auth == AuthKeystone {
		var err error
		if cloud, err = cloudconfig.Read(c.cfg.Cloud, c.cfg.Region, c.cfg.Environ); err != nil {
			return nil, &ConnectError{Stage: AtSettings, Err: err}
		}
		endpoint = cmp.Or(endpoint, cloud.Get("baremetal_endpoint_override"))
		if without := AuthType(cloud.Get("auth_type")); without == AuthNone || without == AuthHTTPBasic {
			auth, endpoint, user, password = without, cmp.Or(endpoint, cloud.Get("endpoint")), cloud.Get("username"), cloud.Get("password")
			c.cfg.Secrets.Hide(password)
		}
	}
	hc, err := c.httpClient(cloud)
	if err != nil {
		return nil, &ConnectError{Stage: AtSettings, Err: err}
	}
	var service *gophercloud.ServiceClient
	switch auth {
	case AuthKeystone:
		service, err = c.connectKeystone(ctx, cloud, endpoint, hc)
		if err != nil {
			return nil, err
		}
	case AuthHTTPBasic:
		service, err = httpbasic.NewBareMetalHTTPBasic(httpbasic.EndpointOpts{
			IronicEndpoint: endpoint, IronicUser: user,
			IronicUserPassword: password,
		})
	case AuthNone:
		service, err = noauth.NewBareMetalNoAuth(noauth.EndpointOpts{IronicEndpoint: endpoint})
	default:
		err = fmt.Errorf("unknown auth_type %q", auth)
	}
	if err != nil {
		return nil, &ConnectError{Stage: AtSettings, Err: err}
	}
	if auth != AuthKeystone {
		service.HTTPClient, service.RetryFunc = *hc, c.retry
		service.UserAgent.Prepend(c.cfg.UserAgent)
	}
	service.Endpoint = strings.TrimSuffix(strings.TrimRight(cmp.Or(endpoint, service.Endpoint), "/"), "/v1") + "/v1/"
	return service, nil
}

// httpClient returns the client for Keystone and Ironic, with the TLS settings of the configuration, and those of the cloud where it has
// none.
func (c *Conn) httpClient(cloud *cloudconfig.Cloud) (*http.Client, error) {
	transport := c.cfg.Transport
	if transport == nil {
		insecure, err := isInsecure(cloud)
		if err != nil {
			return nil, err
		}
		settings := rest.TLS{
			CACertFile: c.cfg.CACertFile, ClientCertFile: c.cfg.ClientCertFile, ClientKeyFile: c.cfg.ClientKeyFile,
			Insecure: c.cfg.Insecure || insecure && c.cfg.CACertFile == "",
		}
		called := map[string]string{}
		if settings.CACertFile == "" && cloud.Get("cacert") != "" {
			settings.CACertFile, called["cacert_file"] = atHome(cloud.Get("cacert")), cloud.Setting("cacert")
		}
		if cert := cloud.Get("cert"); settings.ClientCertFile == "" && cert != "" {
			settings.ClientCertFile, settings.ClientKeyFile = atHome(cert), atHome(cmp.Or(cloud.Get("key"), cert))
			called["client_cert_file"], called["client_key_file"] = cloud.Setting("cert"), cloud.Setting("key")
		}
		settings.Called = func(setting string) string { return cmp.Or(called[setting], setting) }
		if transport, err = settings.Transport(); err != nil {
			return nil, err
		}
	}
	c.transport = transport
	return rest.NewClient(&observed{next: transport, conn: c}, c.cfg.RequestTimeout), nil
}

func isInsecure(cloud *cloudconfig.Cloud) (bool, error) {
	for setting, insecure := range map[string]bool{"insecure": true, "verify": false} {
		text := cloud.Get(setting)
		if text == "" {
			continue
		}
		value, err := strconv.ParseBool(strings.ToLower(text))
		if err != nil {
			return false, fmt.Errorf("%s is %q; it must be true or false", cloud.Setting(setting), text)
		}
		if value == insecure {
			return true, nil
		}
	}
	return false, nil
}

// atHome replaces ~ at the beginning of a path.
func atHome(path string) string {
	if rest, found := strings.CutPrefix(path, "~/"); found {
		if home, err := os.UserHomeDir(); err == nil {
			return filepath.Join(home, rest)
		}
	}
	return path
}
