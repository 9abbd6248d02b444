package deployment

import (
	"context"
	"time"

	"github.com/hashicorp/terraform-plugin-framework-validators/int64validator"
	"github.com/hashicorp/terraform-plugin-framework-validators/setvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/decide"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/deploy"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/framework"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/failure"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/readiness"
)

// readyModel is ready_check: how a machine answers when its system is up.
type readyModel struct {
	TCP       types.String `tfsdk:"tcp"`
	HTTP      types.Object `tfsdk:"http"`
	Timeout   types.String `tfsdk:"timeout"`
	StableFor types.String `tfsdk:"stable_for"`
}

type readyHTTPModel struct {
	URL        types.String `tfsdk:"url"`
	Status     types.Set    `tfsdk:"status_codes"`
	Contains   types.String `tfsdk:"contains"`
	CACertFile types.String `tfsdk:"cacert_file"`
}

func readySchema() schema.Attribute {
	return schema.SingleNestedAttribute{
		Optional: true,
		MarkdownDescription: "A deployment, rebuild, restart or power-on is done when the machine answers. Until then it keeps its slot " +
			"of `provisioning_limit`. **The check runs where Terraform runs**, without a proxy. No answer in time is an error: the next " +
			"apply only checks again. But after a creation the resource is tainted; `terraform untaint` keeps the machine. No check with " +
			"`power_state = \"off\"` or in rescue mode.",
		Attributes: map[string]schema.Attribute{
			"tcp": schema.StringAttribute{
				Optional: true, MarkdownDescription: "`HOST:PORT` that must accept connections. Exactly one of `tcp` and " +
					"`http` is required.",
			},
			"http": schema.SingleNestedAttribute{
				Optional: true, MarkdownDescription: "URL that must answer a GET request. Redirects are not followed.",
				Attributes: map[string]schema.Attribute{
					"url": schema.StringAttribute{
						Required: true, MarkdownDescription: "`http://` or `https://` URL. Stored in the state. Messages and the note on " +
							"the node show only scheme, host and port.",
					},
					"status_codes": schema.SetAttribute{
						Optional: true, ElementType: types.Int64Type, MarkdownDescription: "Accepted codes. Default: 200 to 299.",
						Validators: []validator.Set{
							setvalidator.SizeAtLeast(1),
							setvalidator.ValueInt64sAre(int64validator.Between(100, 599)),
						},
					},
					"contains": schema.StringAttribute{
						Optional: true, MarkdownDescription: "Text in the first MiB of the answer.",
						Validators: []validator.String{stringvalidator.LengthAtLeast(1)},
					},
					"cacert_file": schema.StringAttribute{
						Optional: true, MarkdownDescription: "PEM file of the certificate's authority.",
						Validators: []validator.String{stringvalidator.LengthAtLeast(1)},
					},
				},
			},
			"timeout": schema.StringAttribute{
				Optional: true, MarkdownDescription: "Time from the first attempt, including `stable_for`. Default: `15m`.",
				Validators: []validator.String{framework.NotNegativeDuration},
			},
			"stable_for": schema.StringAttribute{
				Optional: true, MarkdownDescription: "Time for which every attempt must succeed. Default: `0s`.",
				Validators: []validator.String{framework.NotNegativeDuration},
			},
		},
	}
}

// defaultReadyTimeout is the default of ready_check.timeout.
const defaultReadyTimeout = 15 * time.Minute

func (m *model) ready(ctx context.Context) *readyModel {
	return framework.Decoded[readyModel](ctx, m.ReadyCheck)
}

func (m *readyModel) http(ctx context.Context) *readyHTTPModel {
	return framework.Decoded[readyHTTPModel](ctx, m.HTTP)
}

func (m *readyModel) validate(ctx context.Context, diags *diag.Diagnostics) {
	at := path.Root("ready_check")
	switch {
	case m.TCP.IsNull() && m.HTTP.IsNull():
		diags.AddAttributeError(at, "Missing setting", "A ready check needs tcp (a port that accepts connections) or http (a URL "+
			"that answers).")
	case framework.IsSet(m.TCP) && framework.IsSet(m.HTTP):
		diags.AddAttributeError(at.AtName("http"), "Settings exclude each other", "Exactly one of ready_check.tcp and ready_check.http "+
			"must be set. Remove one of them.")
	}
	if framework.IsSet(m.TCP) {
		if err := readiness.CheckAddress(m.TCP.ValueString()); err != nil {
			diags.AddAttributeError(at.AtName("tcp"), "Not an address with a port", failure.Sentence(err))
		}
	}
	if http := m.http(ctx); http != nil && framework.IsSet(http.URL) {
		if fault := ironic.URLFault(http.URL.ValueString(), "http", "https"); fault != "" {
			diags.AddAttributeError(at.AtName("http").AtName("url"), "Not a URL to request", "The value "+fault+".")
		}
	}
	if m.Timeout.IsUnknown() || m.StableFor.IsUnknown() {
		return
	}
	if limit, stable := m.limit(), framework.DurationOf(m.StableFor); limit <= stable {
		diags.AddAttributeError(at.AtName("timeout"), "Time-out too short", "ready_check.timeout includes stable_for: it is "+
			limit.String()+", and stable_for is "+stable.String()+". Raise timeout.")
	}
}

func (m *readyModel) limit() time.Duration {
	if m.Timeout.IsNull() {
		return defaultReadyTimeout
	}
	return framework.DurationOf(m.Timeout)
}

func (m *readyModel) check(ctx context.Context) (c readiness.Check, err error) {
	c = readiness.Check{TCP: m.TCP.ValueString(), Timeout: m.limit(), StableFor: framework.DurationOf(m.StableFor)}
	http := m.http(ctx)
	if http == nil {
		return c, nil
	}
	c.HTTP = &readiness.HTTP{URL: http.URL.ValueString(), Contains: http.Contains.ValueString()}
	http.Status.ElementsAs(ctx, &c.HTTP.Status, false) // the schema says that they are numbers
	if framework.IsSet(http.CACertFile) {
		c.HTTP.CAs, err = readiness.ReadCAs(http.CACertFile.ValueString())
	}
	return c, err
}

// refuseUnreadable refuses a plan whose check could not read its certificates.
func (m *model) refuseUnreadable(ctx context.Context, diags *diag.Diagnostics) {
	if ready := m.ready(ctx); ready != nil {
		if _, err := ready.check(ctx); err != nil {
			diags.AddAttributeError(path.Root("ready_check").AtName("http").AtName("cacert_file"), "Certificates cannot be read",
				failure.Sentence(err)+" Name a PEM file on the computer that runs Terraform.")
		}
	}
}

// What a user does about a machine that is not ready.
const (
	afterCreation = "This resource is tainted now: the next apply would undeploy the machine and deploy it again. To keep it, run " +
		"terraform untaint with the address of this resource; the next apply then only checks again."
	afterUpdate = "The state has what was applied. The next apply only checks again."
)

func (m *model) awaitReady(ctx context.Context, on *machine.Machine, next string) error {
	ready := m.ready(ctx)
	if ready == nil {
		return nil
	}
	check, err := ready.check(ctx)
	if err != nil {
		return err
	}
	return deploy.AwaitReady(ctx, on, check, next)
}

// readReady forgets that a machine was ready if it was deployed or switched off since. runs is what the node showed of its deployment then.
// A rebuild that a killed run has prepared, and that has not begun, changes nothing.
func (d *deployment) readReady(ctx context.Context, m *model, node *ironic.Node, runs deploy.Footprint) {
	redeployed := m.image(ctx) != nil && !d.ignoresContent(m) && runs != (deploy.Footprint{}) && deploy.RunsInstance(node) &&
		(runs.RedeployedSince(node) || runs.OtherImage(node))
	if redeployed || !deploy.StaysReady(node, deploy.PowerState(m.PowerState.ValueString())) {
		m.Ready = types.BoolNull()
	}
}

// readyAfter returns ready of the state after an apply. checked is null if that has no check.
func readyAfter(planned types.Bool, checked decide.Value[bool]) types.Bool {
	if checked.IsNull() {
		return planned
	}
	return framework.FlagValue(checked)
}
