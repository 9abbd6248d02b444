package provider

import (
	"context"
	"time"

	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/provider"
	"github.com/hashicorp/terraform-plugin-framework/provider/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types/basetypes"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
)

var objectAsOptions = basetypes.ObjectAsOptions{}

// Schema sets the schema of the provider block.
func (p *metal) Schema(_ context.Context, _ provider.SchemaRequest, resp *provider.SchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "Allocates, prepares and deploys bare-metal machines through [OpenStack Ironic](https://docs.openstack.org/ironic/latest/), " +
			"with Keystone or standalone. Configuring the provider makes no request; the first use does.",
		Attributes: map[string]schema.Attribute{
			"endpoint": schema.StringAttribute{
				Optional: true,
				MarkdownDescription: "URL of Ironic's API, such as `https://ironic.example.com:6385`, with or without `/v1`. " +
					"Environment: `METAL_ENDPOINT`, then `IRONIC_ENDPOINT`. With Keystone: taken from the service catalog unless set.",
				Validators: []validator.String{endpointURL},
			},
			"auth_type": schema.StringAttribute{
				Optional: true,
				MarkdownDescription: "How to authenticate: `none`, `http_basic` or `keystone`. Default: `keystone` if `cloud`, `OS_CLOUD` or `OS_AUTH_URL` is set, " +
					"`http_basic` if `username` is, else `none`.",
				Validators: []validator.String{stringvalidator.OneOf(string(ironic.AuthNone), string(ironic.AuthHTTPBasic), string(ironic.AuthKeystone))},
			},
			"username": schema.StringAttribute{
				Optional:            true,
				MarkdownDescription: "User name for `http_basic`. Environment: `METAL_USERNAME`.",
			},
			"password": schema.StringAttribute{
				Optional: true, Sensitive: true,
				MarkdownDescription: "Password for `http_basic`. Environment: `METAL_PASSWORD`. It is in no log and no state.",
			},
			"cloud": schema.StringAttribute{
				Optional: true,
				MarkdownDescription: "Name of a cloud in `clouds.yaml`, for Keystone. Environment: `OS_CLOUD`. Without it, the `OS_*` variables are used, " +
					"application credentials too.",
			},
			"region": schema.StringAttribute{
				Optional:            true,
				MarkdownDescription: "Region of the service catalog. Environment: `OS_REGION_NAME`.",
			},
			"cacert_file": schema.StringAttribute{
				Optional:            true,
				MarkdownDescription: "File with the CA certificates (PEM) that Ironic's certificate is verified with. Default: the system's.",
			},
			"client_cert_file": schema.StringAttribute{
				Optional:            true,
				MarkdownDescription: "File with a client certificate (PEM). Needs `client_key_file`.",
			},
			"client_key_file": schema.StringAttribute{
				Optional:            true,
				MarkdownDescription: "File with the private key (PEM) of `client_cert_file`.",
			},
			"insecure": schema.BoolAttribute{
				Optional:            true,
				MarkdownDescription: "Do not verify Ironic's certificate. Default: `false`.",
			},
			"microversion": schema.StringAttribute{
				Optional: true,
				MarkdownDescription: "Upper bound of the API version to use, such as `1.82`. Default: the highest that both Ironic and the provider know. " +
					"The plan refuses what an API version lacks, and names it.",
				Validators: []validator.String{microversion},
			},
			"request_timeout": schema.StringAttribute{
				Optional:            true,
				MarkdownDescription: "How long one request may take, such as `60s` (the default).",
				Validators:          []validator.String{durationAtLeast(time.Second)},
			},
			"api_timeout": schema.StringAttribute{
				Optional: true,
				MarkdownDescription: "How long to wait, before the first use, for the API to answer and for a conductor to run, such as `5m`. " +
					"Default: `0s`, no waiting beyond the usual retries of some seconds.",
				Validators: []validator.String{durationAtLeast(0)},
			},
			"poll_interval": schema.StringAttribute{
				Optional: true,
				MarkdownDescription: "Longest interval between two polls of a node with an operation in progress, such as `10s` (the default). The first poll comes after half a second, and the " +
					"intervals grow. One list of nodes serves all resources that have waited for a while, so the cost does not grow with their number. On a site whose lists are slow the provider polls less often.",
				Validators: []validator.String{durationAtLeast(50 * time.Millisecond)},
			},
			"inspector_url": schema.StringAttribute{
				Optional: true,
				MarkdownDescription: "URL of ironic-inspector, such as `http://ironic.example.com:5050`, for sites on which it inspects and discovers (up to Ironic 2025.1). " +
					"The provider asks it, with the credentials for Ironic, for inventories that Ironic itself does not have.",
				Validators: []validator.String{httpURL},
			},
			"on_change": schema.StringAttribute{
				Optional: true, Validators: []validator.String{stringvalidator.OneOf("rebuild", "replace", "ignore")},
				MarkdownDescription: "What a change of content does to every `metal_deployment` that does not set `on_change` itself: `rebuild` (the default), `replace` or `ignore`. " +
					"The guide [Protect machines](guides/protect-machines.md) compares them. It must be known during plan.",
			},
			"provisioning_limit": limitSchema(),
			"oneview":            oneviewSchema(),
		},
	}
}
