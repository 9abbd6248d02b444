package provider

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/framework"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/throttle"
)

// configured is what the server knows of the provider's configuration.
type configured struct {
	conditions framework.Conditions
	refreshers map[string]refresher // by resource type
	rights     func() *api.Rights   // of the user
	endsHosts  func() bool          // whether the present plan deletes nodes: what keeps one of them refuses that
	freezes    *throttle.Freezes
	warned     atomic.Bool // that the site is frozen
}

// refresher is a framework.Refresher with its clients and its schema.
type refresher struct {
	framework.Refresher
	schema schema.Schema
	kind   tftypes.Type
}

// refreshersOf returns those of the resources that are Refreshers, by type.
func refreshersOf(ctx context.Context, resources []func() resource.Resource, clients framework.Clients) map[string]refresher {
	found := map[string]refresher{}
	for _, newResource := range resources {
		r, is := newResource().(framework.Refresher)
		if !is {
			continue
		}
		var named resource.MetadataResponse
		var has resource.SchemaResponse
		r.Metadata(ctx, resource.MetadataRequest{}, &named)
		r.Schema(ctx, resource.SchemaRequest{}, &has)
		r.Configure(ctx, resource.ConfigureRequest{ProviderData: clients}, &resource.ConfigureResponse{})
		found[named.TypeName] = refresher{r, has.Schema, has.Schema.Type().TerraformType(ctx)}
	}
	return found
}

// ReadResource returns the current state if a framework.Refresher says that it is up to date. Otherwise it calls the framework's
// method, and adds the conditions to the note of framework.NothingToDecide. Both are under guard.
func (s *Server) ReadResource(ctx context.Context, req *tfprotov6.ReadResourceRequest) (*tfprotov6.ReadResourceResponse, error) {
	fresh := *req
	fresh.Private = framework.Private(req.Private).WithoutUnchanged()
	read := func(ctx context.Context, req *tfprotov6.ReadResourceRequest) (*tfprotov6.ReadResourceResponse, error) {
		if resp := s.upToDate(ctx, req); resp != nil {
			return resp, nil
		}
		s.learnFrom(knownSchemas().ResourceSchemas[req.TypeName], req.CurrentState)
		return s.ProviderServer.ReadResource(ctx, &fresh)
	}
	// The answer is in the context below the lease, because the framework keeps the lease until the process ends.
	resp, err := guard(framework.WithAnswer(ctx), s, req, read, func(d *tfprotov6.Diagnostic) *tfprotov6.ReadResourceResponse {
		return &tfprotov6.ReadResourceResponse{NewState: req.CurrentState, Private: fresh.Private, Diagnostics: []*tfprotov6.Diagnostic{d}}
	})
	if resp != nil {
		resp.Private = s.withRights(framework.Private(resp.Private).WithConditions(s.conditions()), resp.NewState, resp.Diagnostics)
		resp.NewState = framework.WithTextNumbers(resp.NewState)
	}
	return resp, err
}

// upToDate answers a Read of a resource that is up to date; nil if only the framework can tell. The framework takes about eight times
// the processor time, most of it for walks over the schema.
func (s *Server) upToDate(ctx context.Context, req *tfprotov6.ReadResourceRequest) *tfprotov6.ReadResourceResponse {
	known := s.known()
	if known == nil || isNull(req.CurrentState) || !framework.Private(req.Private).Noted(known.conditions) {
		return nil
	}
	r, is := known.refreshers[req.TypeName]
	if !is {
		return nil
	}
	raw, err := req.CurrentState.Unmarshal(r.kind)
	if err != nil || !r.UpToDate(ctx, tfsdk.State{Raw: raw, Schema: r.schema}, req.Private) {
		return nil
	}
	return &tfprotov6.ReadResourceResponse{NewState: req.CurrentState, NewIdentity: identityOr(req.CurrentIdentity,
		framework.EncodedIdentity(req.CurrentState.MsgPack)), Private: req.Private}
}

// identityOr returns an identity, or other if Terraform has passed none: versions before 1.12 know no identities.
func identityOr(identity *tfprotov6.ResourceIdentityData, other []byte) *tfprotov6.ResourceIdentityData {
	if identity != nil && !isNull(identity.IdentityData) {
		return identity
	}
	return &tfprotov6.ResourceIdentityData{IdentityData: &tfprotov6.DynamicValue{MsgPack: other}}
}

// PlanResourceChange returns the prior state if there is nothing to decide; otherwise it calls the framework's method under guard.
func (s *Server) PlanResourceChange(ctx context.Context,
	req *tfprotov6.PlanResourceChangeRequest,
) (*tfprotov6.PlanResourceChangeResponse, error) {
	plan := func(ctx context.Context, req *tfprotov6.PlanResourceChangeRequest) (*tfprotov6.PlanResourceChangeResponse, error) {
		if s.unchanged(req) {
			return &tfprotov6.PlanResourceChangeResponse{PlannedState: req.PriorState, PlannedIdentity: identityOr(req.PriorIdentity,
				[]byte{msgpackNull}), PlannedPrivate: req.PriorPrivate}, nil
		}
		s.learnFrom(knownSchemas().ResourceSchemas[req.TypeName], req.PriorState, req.Config)
		resp, err := s.ProviderServer.PlanResourceChange(ctx, req)
		s.warnFrozen(ctx, req, resp)
		return resp, err
	}
	return guard(ctx, s, req, plan, func(d *tfprotov6.Diagnostic) *tfprotov6.PlanResourceChangeResponse {
		return &tfprotov6.PlanResourceChangeResponse{
			PlannedState: req.ProposedNewState, PlannedPrivate: req.PriorPrivate,
			Diagnostics: []*tfprotov6.Diagnostic{d},
		}
	})
}

// warnFrozen warns in the first plan that changes a machine that the site is frozen.
func (s *Server) warnFrozen(ctx context.Context, req *tfprotov6.PlanResourceChangeRequest, resp *tfprotov6.PlanResourceChangeResponse) {
	known := s.known()
	changes := slices.Contains([]string{"metal_host", "metal_deployment", "metal_discovery_import"}, req.TypeName) && resp != nil &&
		req.PriorState != nil && resp.PlannedState != nil && !bytes.Equal(req.PriorState.MsgPack, resp.PlannedState.MsgPack)
	if known == nil || !changes || known.warned.Load() {
		return
	}
	if freeze := known.freezes.Now(ctx); freeze != nil && known.warned.CompareAndSwap(false, true) {
		resp.Diagnostics = append(resp.Diagnostics, &tfprotov6.Diagnostic{
			Severity: tfprotov6.DiagnosticSeverityWarning, Summary: "The site is frozen",
			Detail: fmt.Sprintf("The site was %s. An apply begins nothing on a machine meanwhile: it waits for a freeze that ends within "+
				"the time-out of the resource, and fails otherwise. metal thaw ends the freeze.", freeze),
		})
	}
}

// msgpackNull is the encoding of null in msgpack.
const msgpackNull = 0xc0

// unchanged reports whether the framework's walk over the schema would return the prior state without diagnostics. That is certain
// if the proposed state has the same bytes as the prior one, the last Read has recorded that this state needs no change, and the
// configuration is the one that was applied last. The proposed state alone is not enough: Terraform fills in the prior value of a
// computed attribute that was removed from the configuration.
func (s *Server) unchanged(req *tfprotov6.PlanResourceChangeRequest) bool {
	prior, proposed, config := req.PriorState, req.ProposedNewState, req.Config
	if prior == nil || proposed == nil || config == nil {
		return false
	}
	if len(prior.MsgPack) == 0 || prior.MsgPack[0] == msgpackNull || !bytes.Equal(prior.MsgPack, proposed.MsgPack) {
		return false
	}
	known := s.known()
	return known != nil && framework.Private(req.PriorPrivate).Unchanged(known.conditions, fingerprintOf(req.TypeName, config)) &&
		!known.endsHosts()
}

// conditions returns the conditions of this provider's plans; nil while they are not known.
func (s *Server) conditions() *framework.Conditions {
	if known := s.known(); known != nil {
		return &known.conditions
	}
	return nil
}

// known returns what the server knows of the provider's configuration; nil while a setting is not known.
func (s *Server) known() *configured {
	if s.metal == nil {
		return nil
	}
	return s.metal.configured.Load()
}

func fingerprintOf(typeName string, config *tfprotov6.DynamicValue) string {
	of, known := knownSchemas().fingerprints[typeName]
	if !known || config == nil {
		return ""
	}
	return of.Of(config.MsgPack)
}

// ApplyResourceChange calls the framework's method under guard. The resources recover themselves once they have set state, so that
// what they have created is not lost. If the method succeeds, it adds the conditions to the note of framework.NothingToDecide and records
// the fingerprint of the configuration.
func (s *Server) ApplyResourceChange(ctx context.Context,
	req *tfprotov6.ApplyResourceChangeRequest,
) (*tfprotov6.ApplyResourceChangeResponse, error) {
	fresh := *req
	fresh.PlannedPrivate = framework.Private(req.PlannedPrivate).WithoutNotes()
	resp, err := guard(framework.WithPlanned(ctx, fresh.PlannedPrivate), s, &fresh, s.ProviderServer.ApplyResourceChange,
		func(d *tfprotov6.Diagnostic) *tfprotov6.ApplyResourceChangeResponse {
			return &tfprotov6.ApplyResourceChangeResponse{
				NewState: req.PriorState, Private: fresh.PlannedPrivate,
				Diagnostics: []*tfprotov6.Diagnostic{d},
			}
		})
	if resp == nil || isNull(req.PlannedState) {
		return resp, err
	}
	if slices.ContainsFunc(resp.Diagnostics, isError) {
		resp.Private = framework.Private(resp.Private).WithoutUnchanged()
		return resp, err
	}
	resp.Private = s.withRights(framework.Private(resp.Private).WithConditions(s.conditions()), resp.NewState, resp.Diagnostics)
	if fingerprint := fingerprintOf(req.TypeName, req.Config); fingerprint != "" {
		resp.Private = framework.Private(resp.Private).WithApplied(fingerprint)
	}
	return resp, err
}

// withRights returns the private state of a resource after a Read, Create or Update, with the user's rights if the resource exists for
// the user.
func (s *Server) withRights(private framework.Private, state *tfprotov6.DynamicValue, diags []*tfprotov6.Diagnostic) framework.Private {
	known := s.known()
	if known == nil || isNull(state) || slices.ContainsFunc(diags, isError) {
		return private
	}
	return private.WithRights(known.rights())
}

func isError(d *tfprotov6.Diagnostic) bool { return d.Severity == tfprotov6.DiagnosticSeverityError }

func isNull(v *tfprotov6.DynamicValue) bool {
	return v == nil || len(v.MsgPack) == 1 && v.MsgPack[0] == msgpackNull
}
