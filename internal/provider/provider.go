// Package provider creates the clients from the provider block, and lists the provider's resources, data sources, actions and functions.
package provider

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/hashicorp/terraform-plugin-framework/action"
	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/function"
	"github.com/hashicorp/terraform-plugin-framework/list"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/provider"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/actions"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/rest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/datasources"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/framework"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/functions"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/expect"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/lost"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/readiness"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/oneview"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/oneview/sharing"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/resources/allocation"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/resources/allocationgroup"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/resources/deployment"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/resources/deploytemplate"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/resources/discoveryimport"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/resources/host"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/resources/inspectionrule"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/resources/oneviewprofile"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/resources/runbook"
)

var (
	_ provider.Provider                   = (*metal)(nil)
	_ provider.ProviderWithActions        = (*metal)(nil)
	_ provider.ProviderWithFunctions      = (*metal)(nil)
	_ provider.ProviderWithListResources  = (*metal)(nil)
	_ provider.ProviderWithValidateConfig = (*metal)(nil)
)

// New returns a constructor of the provider, as the framework requires.
func New(version string) func() provider.Provider {
	return func() provider.Provider { return &metal{version: version, secrets: &rest.Secrets{}} }
}

type metal struct {
	version   string
	transport http.RoundTripper // nil: sockets
	environ   []string          // as from os.Environ; nil: that of the process
	secrets   *rest.Secrets     // that no text contains

	configured atomic.Pointer[configured] // nil until all settings are known

	mu         sync.Mutex
	appliances []*oneview.Client // Close logs out of them
}

type model struct {
	Endpoint          types.String `tfsdk:"endpoint"`
	AuthType          types.String `tfsdk:"auth_type"`
	Username          types.String `tfsdk:"username"`
	Password          types.String `tfsdk:"password"`
	Cloud             types.String `tfsdk:"cloud"`
	Region            types.String `tfsdk:"region"`
	Interface         types.String `tfsdk:"interface"`
	CACertFile        types.String `tfsdk:"cacert_file"`
	ClientCertFile    types.String `tfsdk:"client_cert_file"`
	ClientKeyFile     types.String `tfsdk:"client_key_file"`
	Insecure          types.Bool   `tfsdk:"insecure"`
	Microversion      types.String `tfsdk:"microversion"`
	RequestTimeout    types.String `tfsdk:"request_timeout"`
	APITimeout        types.String `tfsdk:"api_timeout"`
	PollInterval      types.String `tfsdk:"poll_interval"`
	InspectorEndpoint types.String `tfsdk:"inspector_endpoint"`
	OnChange          types.String `tfsdk:"on_change"`
	HardwareDrift     types.String `tfsdk:"hardware_drift"`
	LostRecords       types.String `tfsdk:"lost_records"`
	ProvisioningLimit types.Object `tfsdk:"provisioning_limit"`
	Rollout           types.Object `tfsdk:"rollout"`
	OneView           types.Object `tfsdk:"oneview"`
}

func (p *metal) Metadata(_ context.Context, _ provider.MetadataRequest, resp *provider.MetadataResponse) {
	resp.TypeName = "metal"
	resp.Version = p.version
}

func (p *metal) Resources(context.Context) []func() resource.Resource {
	return []func() resource.Resource{
		host.New, allocation.New, allocationgroup.New, deployment.New, discoveryimport.New, oneviewprofile.New, deploytemplate.New,
		inspectionrule.New, runbook.New,
	}
}

// ListResources lists the resources that "terraform query" can find.
func (p *metal) ListResources(context.Context) []func() list.ListResource {
	return []func() list.ListResource{
		host.NewList, allocation.NewList, allocationgroup.NewList, deployment.NewList, discoveryimport.NewList, oneviewprofile.NewList,
		deploytemplate.NewList, inspectionrule.NewList, runbook.NewList,
	}
}

func (p *metal) DataSources(context.Context) []func() datasource.DataSource {
	return []func() datasource.DataSource{
		datasources.NewHost, datasources.NewHosts, datasources.NewAllocation, datasources.NewAllocations, datasources.NewCapacity,
		datasources.NewBootStatus, datasources.NewDiscoveredHosts,
		datasources.NewOneViewServerHardware, datasources.NewOneViewServerProfileTemplate,
	}
}

func (p *metal) Actions(context.Context) []func() action.Action {
	return []func() action.Action{
		actions.NewPower, actions.NewService, actions.NewClean, actions.NewInspect, actions.NewAbort, actions.NewUnhold,
		actions.NewVirtualMedia, actions.NewNMI,
	}
}

func (p *metal) Functions(context.Context) []func() function.Function {
	return []func() function.Function{functions.NewNetworkData, functions.NewBMC}
}

// ValidateConfig checks combinations of settings without the environment.
func (p *metal) ValidateConfig(ctx context.Context, req provider.ValidateConfigRequest, resp *provider.ValidateConfigResponse) {
	var m model
	resp.Diagnostics.Append(req.Config.Get(ctx, &m)...)
	if resp.Diagnostics.HasError() {
		return
	}
	requireBoth(&resp.Diagnostics, "client_cert_file", m.ClientCertFile, "client_key_file", m.ClientKeyFile)
	auth := api.AuthType(m.AuthType.ValueString())
	if auth == api.AuthNone || auth == api.AuthHTTPBasic {
		for _, setting := range []struct {
			name  string
			value types.String
		}{{"cloud", m.Cloud}, {"region", m.Region}, {"interface", m.Interface}} {
			if !setting.value.IsNull() {
				resp.Diagnostics.AddAttributeError(path.Root(setting.name), "Unused setting",
					fmt.Sprintf("%s belongs to auth_type = \"keystone\"; auth_type is %q. Remove one of the two.", setting.name, auth))
			}
		}
	}
	if auth != "" && auth != api.AuthHTTPBasic && !m.Password.IsNull() {
		resp.Diagnostics.AddAttributeError(path.Root("password"), "Unused setting",
			fmt.Sprintf("username and password belong to auth_type = \"http_basic\"; auth_type is %q. With Keystone, credentials come "+
				"from clouds.yaml or the OS_* variables.", auth))
	}
}

func requireBoth(diags *diag.Diagnostics, a string, av types.String, b string, bv types.String) {
	for _, missing := range []struct {
		name        string
		have, other types.String
	}{{a, av, bv}, {b, bv, av}} {
		if missing.have.IsNull() && !missing.other.IsNull() {
			diags.AddAttributeError(path.Root(missing.name), "Missing setting", a+" and "+b+" go together; "+missing.name+" is not set.")
		}
	}
}

// Configure creates the clients. It makes no request and accepts unknown values, which the clients report on first use.
func (p *metal) Configure(ctx context.Context, req provider.ConfigureRequest, resp *provider.ConfigureResponse) {
	var m model
	resp.Diagnostics.Append(req.Config.Get(ctx, &m)...)
	if resp.Diagnostics.HasError() {
		return
	}
	cfg := p.config(ctx, m, &resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	cfg.UserAgent = fmt.Sprintf("terraform-provider-metal/%s Terraform/%s", p.version, req.TerraformVersion)
	cfg.Logger, cfg.Secrets = slog.New(tflogHandler{p.secrets}), p.secrets
	cfg.Transport, cfg.Images = p.transport, p.transport
	if dialer, is := p.transport.(readiness.Dialer); is {
		cfg.Dial = dialer.DialContext
	}
	appliance := p.oneviewClient(ctx, m, cfg.UserAgent, &resp.Diagnostics)
	if appliance != nil {
		p.mu.Lock()
		p.appliances = append(p.appliances, appliance)
		p.mu.Unlock()
	}
	clients := framework.Clients{
		OnChange: m.OnChange, HardwareDrift: m.HardwareDrift, LostRecords: lost.Policy(m.LostRecords.ValueString()),
		Rollout: rolloutDefaults(ctx, m, &resp.Diagnostics),
	}
	clients.Site, clients.Pool = sharing.New(cfg, appliance)
	p.configured.Store(p.configuredWith(ctx, cfg.Config, clients))
	resp.ResourceData, resp.DataSourceData, resp.ListResourceData, resp.ActionData = clients, clients, clients, clients
}

// configuredWith returns what the server needs to leave out plans and Reads; nil while a setting is not known.
func (p *metal) configuredWith(ctx context.Context, cfg api.Config, clients framework.Clients) *configured {
	if cfg.Unknown != "" || clients.OnChange.IsUnknown() || clients.HardwareDrift.IsUnknown() {
		return nil
	}
	return &configured{
		conditions: framework.Conditions{
			Provider: p.version, OnChange: clients.OnChange.ValueString(), Drift: clients.HardwareDrift.ValueString(),
			Microversion: cfg.Microversion.String(), OneView: clients.Pool != nil,
		},
		refreshers: refreshersOf(ctx, p.Resources(ctx), clients),
		rights:     clients.Site.Ironic.Rights,
		endsHosts:  func() bool { return expect.EndsHosts(clients.Site) },
		freezes:    clients.Site.Freezes(),
	}
}

// config merges the provider block with the environment. It reports each error at its attribute.
func (p *metal) config(ctx context.Context, m model, diags *diag.Diagnostics) machine.Config {
	cfg := machine.Config{Config: api.Config{
		Endpoint: p.fromEnv(m.Endpoint, "METAL_ENDPOINT", "IRONIC_ENDPOINT"),
		Username: p.fromEnv(m.Username, "METAL_USERNAME"), Password: p.fromEnv(m.Password, "METAL_PASSWORD"),
		Cloud: m.Cloud.ValueString(), Region: m.Region.ValueString(), Interface: m.Interface.ValueString(),
		CACertFile: m.CACertFile.ValueString(), ClientCertFile: m.ClientCertFile.ValueString(),
		ClientKeyFile:     m.ClientKeyFile.ValueString(),
		Insecure:          m.Insecure.ValueBool(),
		InspectorEndpoint: m.InspectorEndpoint.ValueString(),
		Unknown:           firstUnknown(m),
		Environ:           p.environ,
	}}
	cfg.RequestTimeout = duration(m.RequestTimeout)
	cfg.APITimeout = duration(m.APITimeout)
	cfg.PollInterval = duration(m.PollInterval)
	if v := m.Microversion.ValueString(); v != "" {
		version, err := api.ParseMicroversion(v)
		if err != nil {
			diags.AddAttributeError(path.Root("microversion"), "Not a microversion", err.Error())
		}
		cfg.Microversion = version
	}
	cfg.Limit = p.limit(ctx, m, diags)
	cfg.Auth = api.AuthType(m.AuthType.ValueString())
	if cfg.Auth == "" {
		cfg.Auth = api.ImpliedAuth(cfg.Cloud, cfg.Username, p.getenv)
	}
	if cfg.Unknown == "" {
		p.requireSettings(cfg.Config, diags)
	}
	return cfg
}

func (p *metal) requireSettings(cfg api.Config, diags *diag.Diagnostics) {
	missing := func(attribute, detail string) {
		diags.AddAttributeError(path.Root(attribute), "Provider setting missing or wrong: "+attribute, detail)
	}
	if cfg.Endpoint == "" && cfg.Auth != api.AuthKeystone {
		missing("endpoint", "Set endpoint in the provider block, or METAL_ENDPOINT in the environment, to the URL of Ironic's API, "+
			"such as https://ironic.example.com:6385. (With Keystone it is taken from the service catalog: set cloud or OS_CLOUD.)")
	}
	if cfg.Endpoint != "" {
		if err := checkURL(cfg.Endpoint); err != nil {
			missing("endpoint", fmt.Sprintf("%q %v. It must be a URL such as https://ironic.example.com:6385 (environment variable: "+
				"METAL_ENDPOINT).", cfg.Endpoint, err))
		}
	}
	for attribute, value := range map[string]string{"username": cfg.Username, "password": cfg.Password} {
		if rest.Padded(value) {
			missing(attribute, fmt.Sprintf("The value begins or ends with white space, such as the line break at the end of a file. Use "+
				"trimspace(%s), or correct METAL_%s in the environment.", attribute, strings.ToUpper(attribute)))
		}
	}
	if cfg.Auth == api.AuthHTTPBasic && cfg.Username == "" {
		missing("username", "auth_type is \"http_basic\". Set username in the provider block, or METAL_USERNAME in the environment.")
	}
	if cfg.Auth == api.AuthHTTPBasic && cfg.Password == "" {
		missing("password", "auth_type is \"http_basic\". Set password in the provider block, or METAL_PASSWORD in the environment.")
	}
	if cfg.Auth == api.AuthKeystone && cfg.Cloud == "" && !api.HasCloud(p.getenv) {
		missing("cloud", "auth_type is \"keystone\". Set cloud in the provider block or OS_CLOUD in the environment to a name in "+
			"clouds.yaml, or give the OS_* variables (OS_AUTH_URL and so on).")
	}
}

// firstUnknown returns the name of a required setting that is not known yet.
func firstUnknown(m model) string {
	for _, setting := range []struct {
		name  string
		value types.String
	}{
		{"endpoint", m.Endpoint},
		{"auth_type", m.AuthType},
		{"username", m.Username},
		{"password", m.Password},
		{"cloud", m.Cloud},
		{"region", m.Region},
		{"interface", m.Interface},
		{"cacert_file", m.CACertFile},
		{"client_cert_file", m.ClientCertFile},
		{"client_key_file", m.ClientKeyFile},
		{"microversion", m.Microversion},
		{"inspector_endpoint", m.InspectorEndpoint},
	} {
		if setting.value.IsUnknown() {
			return setting.name
		}
	}
	if m.Insecure.IsUnknown() {
		return "insecure"
	}
	return ""
}
