package provider

import (
	"context"
	"time"

	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/provider"
	"github.com/hashicorp/terraform-plugin-framework/provider/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/lost"
)

func (p *metal) Schema(_ context.Context, _ provider.SchemaRequest, resp *provider.SchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "Enrolls, allocates and deploys bare-metal machines through [OpenStack " +
			"Ironic](https://docs.openstack.org/ironic/latest/), with Keystone or standalone.",
		Attributes: map[string]schema.Attribute{
			"endpoint": schema.StringAttribute{
				Optional: true,
				MarkdownDescription: "Required unless the environment sets it, or Keystone is used. URL of Ironic's API, such as " +
					"`https://ironic.example.com:6385`, with or without `/v1`. The provider follows no redirect: write the final URL. " +
					"Environment: `METAL_ENDPOINT`, then `IRONIC_ENDPOINT`. Default with Keystone: `OS_BAREMETAL_ENDPOINT_OVERRIDE`, or " +
					"the URL in the service catalog.",
				Validators: []validator.String{endpointURL},
			},
			"auth_type": schema.StringAttribute{
				Optional: true,
				MarkdownDescription: "How the provider authenticates: `none`, `http_basic` or `keystone`. Default: `keystone` if `cloud` " +
					"is set, otherwise `http_basic` if `username` or `METAL_USERNAME` is set, otherwise `keystone` if `OS_CLOUD` or " +
					"`OS_AUTH_URL` is set, otherwise `none`.",
				Validators: []validator.String{stringvalidator.OneOf(string(api.AuthNone), string(api.AuthHTTPBasic),
					string(api.AuthKeystone))},
			},
			"username": schema.StringAttribute{
				Optional:            true,
				MarkdownDescription: "Required with `http_basic`. User name. Environment: `METAL_USERNAME`.",
			},
			"password": schema.StringAttribute{
				Optional: true, Sensitive: true,
				MarkdownDescription: "Required with `http_basic`. Password, never logged and never stored in state. Environment: " +
					"`METAL_PASSWORD`.",
			},
			"cloud": schema.StringAttribute{
				Optional: true,
				MarkdownDescription: "Name of a cloud in `clouds.yaml`. Environment: `OS_CLOUD`. Default: the provider uses the [`OS_*` " +
					"variables](#keystone).",
			},
			"region": schema.StringAttribute{
				Optional: true,
				MarkdownDescription: "Region in Keystone's service catalog. Default: `OS_REGION_NAME`, or the region in `clouds.yaml`. " +
					"It can be left out if only one region has Ironic.",
			},
			"interface": schema.StringAttribute{
				Optional: true,
				MarkdownDescription: "Which of Ironic's URLs in the service catalog is used: `public`, `internal` or `admin`. " +
					"Default: `OS_INTERFACE`, or the interface in `clouds.yaml`, or `public`.",
				Validators: []validator.String{stringvalidator.OneOf("public", "internal", "admin")},
			},
			"cacert_file": schema.StringAttribute{
				Optional: true,
				MarkdownDescription: "PEM file with the CA certificates that sign the certificates of Ironic and Keystone. Default: " +
					"`OS_CACERT` or `cacert` in `clouds.yaml` with Keystone, otherwise the certificates of the system.",
			},
			"client_cert_file": schema.StringAttribute{
				Optional:            true,
				MarkdownDescription: "PEM file with a client certificate. Needs `client_key_file`.",
			},
			"client_key_file": schema.StringAttribute{
				Optional:            true,
				MarkdownDescription: "PEM file with the private key of `client_cert_file`.",
			},
			"insecure": schema.BoolAttribute{
				Optional: true,
				MarkdownDescription: "Whether to accept any certificate of Ironic and Keystone. An attacker on the network path can then " +
					"read the credentials. Default: `false`.",
			},
			"microversion": schema.StringAttribute{
				Optional: true,
				MarkdownDescription: "Highest API version that the provider uses, such as `1.82`. Default: the highest that both Ironic " +
					"and the provider know. If an attribute needs a higher version, the plan is an error that names it.",
				Validators: []validator.String{microversion},
			},
			"request_timeout": schema.StringAttribute{
				Optional:            true,
				MarkdownDescription: "Longest time for one request, which is then repeated once. Default: `60s`.",
				Validators:          []validator.String{durationAtLeast(time.Second)},
			},
			"api_timeout": schema.StringAttribute{
				Optional: true,
				MarkdownDescription: "Longest wait, before the first request, until Keystone and the API answer and a conductor runs, " +
					"such as `5m`. Wrong settings and credentials are errors at once. Default: `0s`: the provider only repeats a failed " +
					"request for some seconds.",
				Validators: []validator.String{durationAtLeast(0)},
			},
			"poll_interval": schema.StringAttribute{
				Optional: true,
				MarkdownDescription: "Longest interval between two polls of a node with an operation in progress. The first poll follows " +
					"after half a second; then the intervals grow. If Ironic answers slowly, the provider polls less often. " +
					"Default: `10s`.",
				Validators: []validator.String{durationAtLeast(50 * time.Millisecond)},
			},
			"inspector_endpoint": schema.StringAttribute{
				Optional: true,
				MarkdownDescription: "URL of ironic-inspector, such as `http://ironic.example.com:5050`, for sites that still use it (up " +
					"to Ironic 2025.1). The provider reads inventories there that Ironic does not have, with Ironic's credentials.",
				Validators: []validator.String{httpURL},
			},
			"on_change": schema.StringAttribute{
				Optional: true, Validators: []validator.String{stringvalidator.OneOf("rebuild", "replace", "ignore")},
				MarkdownDescription: "What a new image or config drive does to each `metal_deployment` that does not set `on_change` " +
					"itself: `rebuild` (the default) or `replace`, which **both wipe the machine**, or `ignore`. The value must be known " +
					"during plan. See [Protect machines](guides/protect-machines.md).",
			},
			"hardware_drift": schema.StringAttribute{
				Optional: true, Validators: []validator.String{stringvalidator.OneOf("ignore", "warn", "plan")},
				MarkdownDescription: "Default of `hardware_drift`: [`ignore`, `warn` or `plan`](guides/hardware-settings.md#drift).",
			},
			"lost_records": schema.StringAttribute{
				Optional: true, Validators: []validator.String{stringvalidator.OneOf(
					string(lost.Refuse), string(lost.Restore), string(lost.Recreate),
				)},
				MarkdownDescription: "What happens where Ironic has no record of a machine that is in the state, or one that is older " +
					"than Terraform has seen. `refuse` (the default): all stays in the state, and the plan fails, unless the machine was " +
					"idle. `restore`: the records are made anew, and no machine is touched. `recreate`: what is missing leaves the " +
					"state, and the plan enrolls, cleans and deploys it again, which **wipes the machine**. See [Ironic has lost its " +
					"records](guides/lost-records.md).",
			},
			"provisioning_limit": limitSchema(),
			"rollout":            rolloutSchema(),
			"oneview":            oneviewSchema(),
		},
	}
}
