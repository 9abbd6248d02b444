package provider_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	ctyjson "github.com/zclconf/go-cty/cty/json"
	ctymsgpack "github.com/zclconf/go-cty/cty/msgpack"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/framework"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/provider"
)

// session is Terraform's side of the protocol, with a provider and its fake Ironic.
type session struct {
	testing.TB
	server  *provider.Server
	schemas *tfprotov6.GetProviderSchemaResponse
	fake    *fakeironic.Server
	url     string

	settings block // of the provider, as configured last

	logged context.Context //nolint:containedctx // has a log; nil: there is none
}

// Context is the context of the RPCs.
func (s *session) Context() context.Context {
	if s.logged != nil {
		return s.logged
	}
	return s.TB.Context()
}

// instance is what Terraform keeps of a resource.
type instance struct {
	kind     string
	state    *tfprotov6.DynamicValue
	private  []byte
	identity *tfprotov6.ResourceIdentityData
}

func startSession(t testing.TB, settings block) *session {
	t.Helper()
	return startSessionOn(t, &fakeironic.Server{}, settings)
}

// startSessionOn starts a session with an Ironic.
func startSessionOn(t testing.TB, ironic *fakeironic.Server, settings block) *session {
	t.Helper()
	fake := httptest.NewServer(ironic)
	t.Cleanup(fake.Close)
	s := &session{TB: t, server: provider.NewServer("test"), fake: ironic, url: fake.URL}
	var err error
	if s.schemas, err = s.server.GetProviderSchema(t.Context(), &tfprotov6.GetProviderSchemaRequest{}); err != nil {
		t.Fatal(err)
	}
	s.configure(settings)
	return s
}

// configure configures the provider for the fake Ironic, with further settings.
func (s *session) configure(settings block) {
	s.Helper()
	s.settings = settings
	b := map[string]any{"endpoint": s.url, "poll_interval": "50ms"}
	for name, value := range settings {
		b[name] = value
	}
	config := s.dynamic(s.value(s.schemas.Provider.ValueType(), b))
	resp, err := s.server.ConfigureProvider(s.Context(), &tfprotov6.ConfigureProviderRequest{TerraformVersion: "1.12.0", Config: config})
	if err != nil || len(resp.Diagnostics) > 0 {
		s.Fatalf("configure: %v %v", err, resp.Diagnostics)
	}
}

// notKnown is the value of what is known after the apply only.
const notKnown = unknownValue(true)

type unknownValue bool

// value makes a value of a type from maps, slices, strings, numbers and booleans; what is missing in an object is null.
func (s *session) value(kind tftypes.Type, from any) tftypes.Value {
	s.Helper()
	if from == nil {
		return tftypes.NewValue(kind, nil)
	}
	if from == notKnown {
		return tftypes.NewValue(kind, tftypes.UnknownValue)
	}
	switch kind := kind.(type) {
	case tftypes.Object:
		values := map[string]tftypes.Value{}
		object, _ := from.(map[string]any)
		for name, attribute := range kind.AttributeTypes {
			values[name] = s.value(attribute, object[name])
		}
		return tftypes.NewValue(kind, values)
	case tftypes.Map:
		values := map[string]tftypes.Value{}
		elements, _ := from.(map[string]any)
		for key, element := range elements {
			values[key] = s.value(kind.ElementType, element)
		}
		return tftypes.NewValue(kind, values)
	case tftypes.Set:
		return tftypes.NewValue(kind, s.elements(kind.ElementType, from))
	case tftypes.List:
		return tftypes.NewValue(kind, s.elements(kind.ElementType, from))
	}
	if kind.Is(tftypes.DynamicPseudoType) {
		object, _ := from.(map[string]any)
		kinds, values := map[string]tftypes.Type{}, map[string]tftypes.Value{}
		for key, value := range object {
			kinds[key], values[key] = tftypes.String, tftypes.NewValue(tftypes.String, value)
		}
		return tftypes.NewValue(tftypes.Object{AttributeTypes: kinds}, values)
	}
	return tftypes.NewValue(kind, from)
}

func (s *session) elements(kind tftypes.Type, from any) (values []tftypes.Value) {
	list, _ := from.([]any)
	for _, element := range list {
		values = append(values, s.value(kind, element))
	}
	return values
}

// dynamic encodes a value as Terraform does, with the keys of maps and the elements of sets in order.
func (s *session) dynamic(value tftypes.Value) *tfprotov6.DynamicValue {
	s.Helper()
	encoded, err := tfprotov6.NewDynamicValue(value.Type(), value)
	if err != nil {
		s.Fatal(err)
	}
	return s.ordered(value.Type(), &encoded)
}

// ordered is an encoded value as Terraform encodes it.
func (s *session) ordered(kind tftypes.Type, encoded *tfprotov6.DynamicValue) *tfprotov6.DynamicValue {
	s.Helper()
	text, err := kind.MarshalJSON() //nolint:staticcheck // Terraform's own encoding of types
	if err != nil {
		s.Fatal(err)
	}
	terraforms, err := ctyjson.UnmarshalType(text)
	if err != nil {
		s.Fatal(err)
	}
	value, err := ctymsgpack.Unmarshal(encoded.MsgPack, terraforms)
	if err != nil {
		s.Fatal(err)
	}
	if text, err = ctymsgpack.Marshal(value, terraforms); err != nil {
		s.Fatal(err)
	}
	return &tfprotov6.DynamicValue{MsgPack: text}
}

func (s *session) kind(name string) tftypes.Type { return s.schemas.ResourceSchemas[name].ValueType() }

// of is the value in a DynamicValue of a resource.
func (s *session) of(kind string, d *tfprotov6.DynamicValue) tftypes.Value {
	s.Helper()
	value, err := d.Unmarshal(s.kind(kind))
	if err != nil {
		s.Fatal(err)
	}
	return value
}

// planRequest is what Terraform asks for a configuration; prior is nil for a creation.
func (s *session) planRequest(kind string, config map[string]any, prior *instance) *tfprotov6.PlanResourceChangeRequest {
	s.Helper()
	schema := s.schemas.ResourceSchemas[kind]
	configured := s.value(s.kind(kind), config)
	req := &tfprotov6.PlanResourceChangeRequest{TypeName: kind, Config: s.dynamic(configured)}
	before := s.value(s.kind(kind), nil)
	if prior != nil {
		before, req.PriorPrivate, req.PriorIdentity = s.of(kind, prior.state), prior.private, prior.identity
	}
	req.PriorState = s.dynamic(before)
	req.ProposedNewState = s.dynamic(tftypes.NewValue(s.kind(kind), proposed(schema.Block.Attributes, fields(before), fields(configured))))
	return req
}

// fields are the attributes of an object; empty if it is null.
func fields(object tftypes.Value) map[string]tftypes.Value {
	values := map[string]tftypes.Value{}
	_ = object.As(&values) // null has none
	return values
}

// proposed merges a prior object and its configuration as Terraform does: what is computed and not configured stays.
func proposed(attributes []*tfprotov6.SchemaAttribute, prior, config map[string]tftypes.Value) map[string]tftypes.Value {
	values := map[string]tftypes.Value{}
	for _, a := range attributes {
		kind := a.ValueType()
		before, configured := prior[a.Name], config[a.Name]
		if before.Type() == nil {
			before = tftypes.NewValue(kind, nil)
		}
		switch {
		case a.WriteOnly:
			values[a.Name] = tftypes.NewValue(kind, nil)
		case a.Computed && configured.IsNull():
			values[a.Name] = before
		case a.NestedType == nil || configured.IsNull() || !configured.IsKnown():
			values[a.Name] = configured
		case a.NestedType.Nesting == tfprotov6.SchemaObjectNestingModeSingle:
			values[a.Name] = tftypes.NewValue(kind, proposed(a.NestedType.Attributes, fields(before), fields(configured)))
		case a.NestedType.Nesting == tfprotov6.SchemaObjectNestingModeMap:
			elements, had := map[string]tftypes.Value{}, fields(before)
			for key, element := range fields(configured) {
				elements[key] = tftypes.NewValue(element.Type(), proposed(a.NestedType.Attributes, fields(had[key]), fields(element)))
			}
			values[a.Name] = tftypes.NewValue(kind, elements)
		default:
			values[a.Name] = configured // lists of objects without computed attributes
		}
	}
	return values
}

// apply plans and applies a configuration, and returns what Terraform keeps.
func (s *session) apply(kind string, config map[string]any, prior *instance) (*instance, []*tfprotov6.Diagnostic) {
	s.Helper()
	req := s.planRequest(kind, config, prior)
	plan, err := s.server.PlanResourceChange(s.Context(), req)
	if err != nil {
		s.Fatal(err)
	}
	if failed(plan.Diagnostics) || len(plan.RequiresReplace) > 0 || plan.PlannedState == req.PriorState {
		return prior, plan.Diagnostics
	}
	done, err := s.server.ApplyResourceChange(s.Context(), &tfprotov6.ApplyResourceChangeRequest{
		TypeName: kind, Config: req.Config, PriorState: req.PriorState, PlannedState: plan.PlannedState,
		PlannedPrivate: plan.PlannedPrivate, PlannedIdentity: plan.PlannedIdentity,
	})
	if err != nil {
		s.Fatal(err)
	}
	return &instance{kind: kind, state: s.ordered(s.kind(kind), done.NewState), private: done.Private, identity: done.NewIdentity},
		done.Diagnostics
}

// planDestroy plans the destruction of an instance, and returns what the plan says.
func (s *session) planDestroy(prior *instance) []*tfprotov6.Diagnostic {
	s.Helper()
	none := s.dynamic(s.value(s.kind(prior.kind), nil))
	plan, err := s.server.PlanResourceChange(s.Context(), &tfprotov6.PlanResourceChangeRequest{
		TypeName: prior.kind, Config: none, PriorState: prior.state, ProposedNewState: none, PriorPrivate: prior.private,
		PriorIdentity: prior.identity,
	})
	if err != nil {
		s.Fatal(err)
	}
	return plan.Diagnostics
}

func failed(diagnostics []*tfprotov6.Diagnostic) bool {
	for _, d := range diagnostics {
		if d.Severity == tfprotov6.DiagnosticSeverityError {
			return true
		}
	}
	return false
}

// read refreshes an instance; nil if it is gone.
func (s *session) read(i *instance) *instance {
	s.Helper()
	after, _ := s.refresh(i)
	return after
}

// refresh refreshes an instance, and reports whether the server has not asked the framework. If so, it compares the answer with
// what the framework says.
func (s *session) refresh(i *instance) (after *instance, atOnce bool) {
	s.Helper()
	s.configure(s.settings) // a run reads an instance once
	req := &tfprotov6.ReadResourceRequest{TypeName: i.kind, CurrentState: i.state, Private: i.private, CurrentIdentity: i.identity}
	inner := &reads{ProviderServer: s.server.ProviderServer}
	s.server.ProviderServer = inner
	resp, err := s.server.ReadResource(s.Context(), req)
	s.server.ProviderServer = inner.ProviderServer
	if err != nil || failed(resp.Diagnostics) {
		s.Fatalf("read: %v %v", err, resp.Diagnostics)
	}
	if atOnce = !inner.asked; atOnce {
		s.compareWithFramework(req, resp)
	}
	if s.of(i.kind, resp.NewState).IsNull() {
		return nil, atOnce
	}
	return &instance{kind: i.kind, state: s.ordered(s.kind(i.kind), resp.NewState), private: resp.Private, identity: resp.NewIdentity},
		atOnce
}

// reads is the framework's server, and notes whether it was asked to read.
type reads struct {
	provider.ProviderServer
	asked bool
}

// ReadResource asks the framework.
func (r *reads) ReadResource(ctx context.Context, req *tfprotov6.ReadResourceRequest) (*tfprotov6.ReadResourceResponse, error) {
	r.asked = true
	return r.ProviderServer.ReadResource(ctx, req)
}

// compareWithFramework fails if the framework does not refresh to the same values, or says something.
func (s *session) compareWithFramework(req *tfprotov6.ReadResourceRequest, got *tfprotov6.ReadResourceResponse) {
	s.Helper()
	s.configure(s.settings)
	without := *req
	without.Private = framework.Private(req.Private).WithoutUnchanged()
	want, err := s.server.ProviderServer.ReadResource(s.Context(), &without)
	if err != nil {
		s.Fatal(err)
	}
	differences, err := s.of(req.TypeName, want.NewState).Diff(s.of(req.TypeName, got.NewState))
	if err != nil || len(differences) > 0 || len(want.Diagnostics) > 0 {
		s.Errorf("the server hides a change: %v %v %s", differences, err, describe(want.Diagnostics))
	}
	if !bytes.Equal(framework.Private(want.Private).WithoutUnchanged(), framework.Private(got.Private).WithoutUnchanged()) ||
		!bytes.Equal(want.NewIdentity.IdentityData.MsgPack, got.NewIdentity.IdentityData.MsgPack) {
		s.Errorf("private state %s and identity %v, the framework says %s and %v", got.Private, got.NewIdentity, want.Private,
			want.NewIdentity)
	}
}

// text is a string attribute of an instance.
func (s *session) text(i *instance, attribute string) (text string) {
	s.Helper()
	if err := fields(s.of(i.kind, i.state))[attribute].As(&text); err != nil {
		s.Fatal(err)
	}
	return text
}

// call makes a request to the fake Ironic, as another user, and returns the status.
func (s *session) call(method, path string, body any) int {
	s.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		s.Fatal(err)
	}
	req, err := http.NewRequestWithContext(s.Context(), method, s.url+path, bytes.NewReader(text))
	if err != nil {
		s.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-OpenStack-Ironic-API-Version", "1.82")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		s.Fatal(err)
	}
	_ = resp.Body.Close()
	return resp.StatusCode
}

// patch is one operation of a JSON patch.
func patch(op, path string, value any) []map[string]any {
	return []map[string]any{{"op": op, "path": path, "value": value}}
}

// describe says what is in diagnostics.
func describe(diagnostics []*tfprotov6.Diagnostic) (text string) {
	for _, d := range diagnostics {
		text += fmt.Sprintf("%s: %s\n", d.Summary, d.Detail)
	}
	return text
}
