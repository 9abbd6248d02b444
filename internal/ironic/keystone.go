package ironic

import (
	"context"
	"crypto/tls"
	"errors"
	"net/http"
	"os"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack"
	"github.com/gophercloud/gophercloud/v2/openstack/config"
	"github.com/gophercloud/gophercloud/v2/openstack/config/clouds"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/rest"
)

// connectKeystone authenticates with clouds.yaml if a cloud is named, otherwise with the OS_* variables.
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
			hc.Transport = &observed{next: rest.NewTransport(tlsConfig), client: c}
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
	c.cfg.Secrets.Hide(auth.Password)
	c.cfg.Secrets.Hide(auth.ApplicationCredentialSecret)
	c.cfg.Secrets.Hide(auth.TokenID)
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
