package ironic

import (
	"context"
	"fmt"
	"strings"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack/baremetal/httpbasic"
	"github.com/gophercloud/gophercloud/v2/openstack/baremetal/noauth"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/rest"
)

// api returns the service client to send requests with. On first use it connects: it reads credentials and certificates, waits for
// the API, and negotiates the microversion. After a failure the next use connects again.
func (c *Client) api(ctx context.Context) (*gophercloud.ServiceClient, error) {
	if c.cfg.Unknown != "" {
		return nil, &rest.UnknownConfigError{Attribute: c.cfg.Unknown}
	}
	if service := c.connected(); service != nil {
		return service, nil
	}
	unlock, err := c.locks.lock(ctx, "connection") // not mu: a caller must be able to stop waiting
	if err != nil {
		return nil, err
	}
	defer unlock()
	if service := c.connected(); service != nil {
		return service, nil
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
	service.RetryFunc = retry
	c.mu.Lock()
	defer c.mu.Unlock()
	c.server, c.service = server, service
	return service, nil
}

// connected returns the service client; nil before the first successful use.
func (c *Client) connected() *gophercloud.ServiceClient {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.service
}

// connect prepares a service client for the configured way to authenticate. Only Keystone sends requests here.
func (c *Client) connect(ctx context.Context) (*gophercloud.ServiceClient, error) {
	transport := c.cfg.Transport
	if transport == nil {
		made, err := rest.TLS{
			CACertFile: c.cfg.CACertFile, ClientCertFile: c.cfg.ClientCertFile, ClientKeyFile: c.cfg.ClientKeyFile, Insecure: c.cfg.Insecure,
		}.Transport()
		if err != nil {
			return nil, err
		}
		transport = made
	}
	hc := *rest.NewClient(&observed{next: transport, client: c}, c.cfg.RequestTimeout)
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
	service.RetryFunc = c.retryFirst
	service.UserAgent.Prepend(c.cfg.UserAgent)
	if c.cfg.Endpoint != "" {
		service.Endpoint = c.cfg.Endpoint
	}
	service.Endpoint = strings.TrimSuffix(strings.TrimRight(service.Endpoint, "/"), "/v1") + "/v1/"
	return service, nil
}
