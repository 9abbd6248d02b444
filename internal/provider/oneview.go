package provider

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"

	"github.com/hashicorp/terraform-plugin-framework-validators/int64validator"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/provider/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/rest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/oneview"
)

type oneviewModel struct {
	Endpoint   types.String `tfsdk:"endpoint"`
	Username   types.String `tfsdk:"username"`
	Password   types.String `tfsdk:"password"`
	Domain     types.String `tfsdk:"domain"`
	APIVersion types.Int64  `tfsdk:"api_version"`
	CACertFile types.String `tfsdk:"cacert_file"`
	Insecure   types.Bool   `tfsdk:"insecure"`
}

func oneviewSchema() schema.Attribute {
	text := func(description string) schema.StringAttribute {
		return schema.StringAttribute{Optional: true, MarkdownDescription: description}
	}
	return schema.SingleNestedAttribute{
		Optional: true,
		MarkdownDescription: "HPE OneView appliance whose server hardware Ironic shares with other users. See " +
			"[OneView](guides/oneview.md). Without `endpoint`, the provider refuses to deploy, clean, inspect or switch nodes with " +
			"`driver_info.dynamic_allocation`, because it cannot tell who uses the server. You can set everything in the environment, " +
			"and omit the block.",
		Attributes: map[string]schema.Attribute{
			"endpoint": text("Required unless the environment sets it. URL of the appliance, such as `https://oneview.example.com`. " +
				"Environment: `ONEVIEW_ENDPOINT`."),
			"username": text("Required unless the environment sets it. User whose role allows managing servers. Environment: " +
				"`ONEVIEW_USERNAME`."),
			"password": schema.StringAttribute{Optional: true, Sensitive: true, MarkdownDescription: "Required unless the environment " +
				"sets it. Password. Environment: `ONEVIEW_PASSWORD`, which keeps it out of the configuration."},
			"domain": text("Directory that authenticates the user. Default: the appliance's own users. Environment: " +
				"`ONEVIEW_DOMAIN`."),
			"api_version": schema.Int64Attribute{
				Optional: true, Validators: []validator.Int64{int64validator.AtLeast(300)},
				MarkdownDescription: "Highest API version (`X-API-Version`) that the provider uses, at least 300. Default: the highest " +
					"that both sides know. Environment: `ONEVIEW_API_VERSION`.",
			},
			"cacert_file": text("PEM file with the CA certificates that sign the certificate of the appliance. Default: the certificates " +
				"of the system. Environment: `ONEVIEW_CACERT_FILE`."),
			"insecure": schema.BoolAttribute{Optional: true, MarkdownDescription: "Whether to accept any certificate of the " +
				"appliance. An attacker on the network path can then read the password. Not together with `cacert_file`. Default: " +
				"`false`. Environment: `ONEVIEW_INSECURE`."},
		},
	}
}

// oneviewClient returns the client of the appliance; nil if none is configured. It makes no request.
func (p *metal) oneviewClient(ctx context.Context, m model, agent string, diags *diag.Diagnostics) *oneview.Client {
	var block oneviewModel
	at := path.Root("oneview")
	if m.OneView.IsUnknown() {
		block.Endpoint = types.StringUnknown()
	} else if !m.OneView.IsNull() {
		diags.Append(m.OneView.As(ctx, &block, objectAsOptions)...)
	}
	cfg := oneview.Config{
		Endpoint: p.fromEnv(block.Endpoint, "ONEVIEW_ENDPOINT"), Username: p.fromEnv(block.Username, "ONEVIEW_USERNAME"),
		Password: p.fromEnv(block.Password, "ONEVIEW_PASSWORD"), Domain: p.fromEnv(block.Domain, "ONEVIEW_DOMAIN"),
		CACertFile: p.fromEnv(block.CACertFile, "ONEVIEW_CACERT_FILE"), APIVersion: int(block.APIVersion.ValueInt64()),
		Insecure:     block.Insecure.ValueBool(),
		PollInterval: min(duration(m.PollInterval), oneview.DefaultPollInterval), UserAgent: agent,
		Logger: slog.New(tflogHandler{p.secrets}), Secrets: p.secrets, Unknown: block.firstUnknown(), Transport: p.transport,
	}
	if m.OneView.IsNull() && cfg.Endpoint == "" {
		return nil
	}
	if text := p.getenv("ONEVIEW_API_VERSION"); text != "" && block.APIVersion.IsNull() {
		version, err := strconv.Atoi(text)
		if err != nil {
			diags.AddAttributeError(at.AtName("api_version"), "Not a number",
				fmt.Sprintf("ONEVIEW_API_VERSION is %q. It must be a number such as 3800.", text))
		}
		cfg.APIVersion = version
	}
	if text := p.getenv("ONEVIEW_INSECURE"); text != "" && block.Insecure.IsNull() {
		insecure, err := strconv.ParseBool(text)
		if err != nil {
			diags.AddAttributeError(at.AtName("insecure"), "Neither true nor false",
				fmt.Sprintf("ONEVIEW_INSECURE is %q. It must be true or false.", text))
		}
		cfg.Insecure = insecure
	}
	if cfg.Unknown == "" {
		for _, setting := range []struct{ name, value, variable string }{
			{"endpoint", cfg.Endpoint, "ONEVIEW_ENDPOINT"},
			{"username", cfg.Username, "ONEVIEW_USERNAME"},
			{"password", cfg.Password, "ONEVIEW_PASSWORD"},
		} {
			if setting.value == "" {
				diags.AddAttributeError(at.AtName(setting.name), "Provider setting missing: oneview."+setting.name,
					fmt.Sprintf("Set %s in oneview, or %s in the environment.", setting.name, setting.variable))
			} else if rest.Padded(setting.value) {
				diags.AddAttributeError(at.AtName(setting.name), "White space around a value", fmt.Sprintf("The value begins or ends with "+
					"white space. Use trimspace() in oneview, or correct %s in the environment.", setting.variable))
			}
		}
	}
	if diags.HasError() {
		return nil
	}
	client, err := oneview.New(cfg)
	if err != nil {
		diags.AddAttributeError(at, "OneView cannot be used", err.Error()+".")
		return nil
	}
	return client
}

// firstUnknown returns the name of a setting that is not known yet; empty if there is none.
func (m oneviewModel) firstUnknown() string {
	for _, setting := range []struct {
		name    string
		unknown bool
	}{
		{"endpoint", m.Endpoint.IsUnknown()},
		{"username", m.Username.IsUnknown()},
		{"password", m.Password.IsUnknown()},
		{"domain", m.Domain.IsUnknown()},
		{"api_version", m.APIVersion.IsUnknown()},
		{"cacert_file", m.CACertFile.IsUnknown()},
		{"insecure", m.Insecure.IsUnknown()},
	} {
		if setting.unknown {
			return "oneview." + setting.name
		}
	}
	return ""
}
