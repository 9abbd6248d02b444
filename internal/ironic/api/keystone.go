package api

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/tokens"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/rest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/cloudconfig"
)

// connectKeystone gets a token from Keystone as a cloud says, and, if no endpoint is configured, Ironic's URL from the service catalog.
func (c *Conn) connectKeystone(ctx context.Context, cloud *cloudconfig.Cloud, endpoint string,
	hc *http.Client,
) (*gophercloud.ServiceClient, error) {
	options, err := authOptions(cloud)
	if err != nil {
		return nil, &ConnectError{Stage: AtSettings, Err: err}
	}
	c.cfg.Secrets.HideURL(options.IdentityEndpoint)
	c.cfg.Secrets.Hide(options.Password)
	c.cfg.Secrets.Hide(options.ApplicationCredentialSecret)
	c.cfg.Secrets.Hide(options.TokenID)
	c.keystone = &keystone{url: options.IdentityEndpoint, cloud: cloud, token: options.TokenID != ""}
	provider, err := openstack.NewClient(options.IdentityEndpoint)
	if err != nil {
		return nil, &ConnectError{Stage: AtSettings, Err: fmt.Errorf("%s is not a URL", cloud.Setting("auth_url"))}
	}
	provider.HTTPClient, provider.RetryFunc = *hc, c.retry
	provider.UserAgent.Prepend(c.cfg.UserAgent)
	if err := openstack.Authenticate(ctx, provider, options); err != nil {
		return nil, c.authError(err)
	}
	provider.ReauthFunc = lasting(provider.ReauthFunc)
	if endpoint == "" {
		endpoint, err = c.locate(provider.GetAuthResult())
	}
	return &gophercloud.ServiceClient{ProviderClient: provider, Type: "baremetal", Endpoint: endpoint}, err
}

// renewalGrace is how long the renewal of a token goes on after the request that needs it first was interrupted: as long as a Keystone that
// starts is asked again.
const renewalGrace = 20 * time.Second

// lasting returns a renewal of tokens that outlasts an interruption of its caller, because other requests wait for it, too.
func lasting(renew func(context.Context) error) func(context.Context) error {
	if renew == nil {
		return nil
	}
	return func(ctx context.Context) error {
		later, stop := rest.OutlastFor(ctx, renewalGrace)
		defer stop()
		err := renew(later)
		if err != nil && later.Err() != nil { // the others were not interrupted
			return os.ErrDeadlineExceeded
		}
		return err
	}
}

// keystone is where a client gets its tokens.
type keystone struct {
	url   string // of its API, with /v3
	cloud *cloudconfig.Cloud
	token bool   // the user has given a token, which cannot be renewed
	found string // in which part of the catalog Ironic's URL is; empty: the URL is not from there
}

// authOptions returns the request for a token. Its error names the setting that is wrong or missing.
func authOptions(cloud *cloudconfig.Cloud) (gophercloud.AuthOptions, error) {
	options := gophercloud.AuthOptions{IdentityEndpoint: identityURL(cloud.Get("auth_url")), AllowReauth: true}
	needs := [][]string{{"auth_url"}} // one setting of each
	switch method := authMethod(cloud); method {
	case "password":
		options.Password = cloud.Get("password")
		needs = append(needs, []string{"username", "user_id"}, []string{"password"})
	case "token":
		options.TokenID, options.AllowReauth = cloud.Get("token"), false
		needs = append(needs, []string{"token"})
	case "applicationcredential":
		options.ApplicationCredentialID, options.ApplicationCredentialSecret = cloud.Get("application_credential_id"),
			cloud.Get("application_credential_secret")
		needs = append(needs, []string{"application_credential_id", "application_credential_name"},
			[]string{"application_credential_secret"})
		if options.ApplicationCredentialID == "" {
			options.ApplicationCredentialName = cloud.Get("application_credential_name")
			needs = append(needs, []string{"username", "user_id"})
		}
	default:
		return options, fmt.Errorf("%s is %q, which the provider does not support; it must be password, token or v3applicationcredential",
			cloud.Setting("auth_type"), cloud.Get("auth_type"))
	}
	for _, either := range needs {
		if !slices.ContainsFunc(either, func(key string) bool { return cloud.Get(key) != "" }) {
			return options, fmt.Errorf("%s is not set", cloud.Setting(either[0]))
		}
	}
	if options.TokenID == "" && options.ApplicationCredentialID == "" {
		setUser(&options, cloud)
	}
	scope, err := scopeOf(cloud)
	options.Scope = scope
	return options, err
}

// setUser sets the user: the ID, or the name in a domain.
func setUser(options *gophercloud.AuthOptions, cloud *cloudconfig.Cloud) {
	if options.UserID = cloud.Get("user_id"); options.UserID == "" {
		options.Username = cloud.Get("username")
		options.DomainID, options.DomainName = either(cloud, "user_domain_id", "user_domain_name")
	}
}

func either(cloud *cloudconfig.Cloud, id, name string) (string, string) {
	if cloud.Get(id) != "" {
		return cloud.Get(id), ""
	}
	return "", cloud.Get(name)
}

// scopeOf returns what the token is for. nil: Keystone chooses.
func scopeOf(cloud *cloudconfig.Cloud) (*gophercloud.AuthScope, error) {
	scope := &gophercloud.AuthScope{}
	scope.ProjectID, scope.ProjectName = either(cloud, "project_id", "project_name")
	switch system := cloud.Get("system_scope"); {
	case scope.ProjectName != "":
		scope.DomainID, scope.DomainName = either(cloud, "project_domain_id", "project_domain_name")
	case scope.ProjectID != "":
	case cloud.Get("trust_id") != "":
		scope.TrustID = cloud.Get("trust_id")
	case system == "all":
		scope.System = true
	case system != "":
		return nil, fmt.Errorf("%s is %q; it must be all", cloud.Setting("system_scope"), system)
	default:
		scope.DomainID, scope.DomainName = either(cloud, "domain_id", "domain_name")
	}
	if *scope == (gophercloud.AuthScope{}) {
		return nil, nil //nolint:nilnil // no scope is asked for
	}
	return scope, nil
}

func authMethod(cloud *cloudconfig.Cloud) string {
	if given := cloud.Get("auth_type"); given != "" {
		return strings.TrimPrefix(given, "v3")
	}
	user := cloud.Get("username") != "" || cloud.Get("user_id") != ""
	credential := cloud.Get("application_credential_id") != "" || cloud.Get("application_credential_name") != ""
	switch {
	case credential && cloud.Get("password") == "":
		return "applicationcredential"
	case cloud.Get("token") != "" && !user:
		return "token"
	}
	return "password"
}

// identityURL returns the URL of the version 3 of the identity API, which every Keystone has.
func identityURL(authURL string) string {
	if authURL == "" {
		return ""
	}
	base := strings.TrimRight(authURL, "/")
	for _, version := range []string{"/v3", "/v2.0"} {
		base = strings.TrimSuffix(base, version)
	}
	return base + "/v3"
}

// serviceTypes are the names of the Bare Metal API in catalogs, the official one first.
var serviceTypes = []string{"baremetal", "bare-metal"}

// locate returns Ironic's URL from the service catalog that came with a token. Where regions have several, the user must choose: the order
// of the catalog is arbitrary.
func (c *Conn) locate(auth gophercloud.AuthResult) (string, error) {
	cloud := c.keystone.cloud
	wanted := &ConnectError{Stage: AtCatalog, URL: c.cfg.Secrets.Redact(c.keystone.url), Catalog: Catalog{
		Type:      cmp.Or(cloud.Get("baremetal_service_type"), serviceTypes[0]),
		Region:    cmp.Or(c.cfg.Region, cloud.Get("baremetal_region_name"), cloud.Get("region_name")),
		Interface: strings.TrimSuffix(cmp.Or(c.cfg.Interface, cloud.Get("baremetal_interface"), cloud.Get("interface"), "public"), "URL"),
	}}
	result, ok := auth.(interface {
		ExtractServiceCatalog() (*tokens.ServiceCatalog, error)
	})
	if !ok {
		return "", wanted
	}
	catalog, err := result.ExtractServiceCatalog()
	if err != nil {
		return "", c.authError(err)
	}
	var urls []string
	for _, service := range catalog.Entries {
		wanted.Types = append(wanted.Types, service.Type)
		if service.Type != wanted.Type && (wanted.Type != serviceTypes[0] || !slices.Contains(serviceTypes, service.Type)) {
			continue
		}
		for _, e := range service.Endpoints {
			region := cmp.Or(e.RegionID, e.Region)
			wanted.Has = append(wanted.Has, Place{Region: region, Interface: e.Interface})
			if e.Interface == wanted.Interface && (wanted.Region == "" || wanted.Region == e.Region || wanted.Region == e.RegionID) {
				c.keystone.found = fmt.Sprintf("region %s, interface %s", region, e.Interface)
				urls = append(urls, e.URL)
			}
		}
	}
	if len(slices.Compact(slices.Sorted(slices.Values(urls)))) != 1 {
		wanted.Several = len(urls) > 0
		return "", wanted
	}
	return urls[0], nil
}
