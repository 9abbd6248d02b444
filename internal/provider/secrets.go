package provider

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"

	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/rest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/framework"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
)

// learn adds the secrets in a request of Terraform to those that no text contains. PlanResourceChange and ReadResource call learnFrom
// themselves, unless they answer without looking at the values.
func (s *Server) learn(req any) {
	switch req := req.(type) {
	case *tfprotov6.ValidateProviderConfigRequest:
		s.learnFrom(knownSchemas().Provider, req.Config)
	case *tfprotov6.ConfigureProviderRequest:
		s.learnFrom(knownSchemas().Provider, req.Config)
	case *tfprotov6.ValidateResourceConfigRequest:
		s.learnFrom(knownSchemas().ResourceSchemas[req.TypeName], req.Config)
	case *tfprotov6.ApplyResourceChangeRequest:
		s.learnFrom(knownSchemas().ResourceSchemas[req.TypeName], req.PriorState, req.PlannedState, req.Config)
	case *tfprotov6.ValidateDataResourceConfigRequest:
		s.learnFrom(knownSchemas().DataSourceSchemas[req.TypeName], req.Config)
	case *tfprotov6.ReadDataSourceRequest:
		s.learnFrom(knownSchemas().DataSourceSchemas[req.TypeName], req.Config)
	case *tfprotov6.ValidateActionConfigRequest:
		s.learnFromAction(req.ActionType, req.Config)
	case *tfprotov6.PlanActionRequest:
		s.learnFromAction(req.ActionType, req.Config)
	case *tfprotov6.InvokeActionRequest:
		s.learnFromAction(req.ActionType, req.Config)
	}
}

func (s *Server) learnFromAction(name string, config *tfprotov6.DynamicValue) {
	if schema := knownSchemas().ActionSchemas[name]; schema != nil {
		s.learnFrom(schema.Schema, config)
	}
}

// learnFrom adds the secrets in values of a schema: sensitive and write-only attributes, values whose keys name a secret, and the
// credentials and queries of URLs. It ignores values that it cannot decode: the framework reports them.
func (s *Server) learnFrom(schema *tfprotov6.Schema, values ...*tfprotov6.DynamicValue) {
	if schema == nil || schema.Block == nil {
		return
	}
	for _, value := range values {
		if value == nil {
			continue
		}
		if decoded, err := value.Unmarshal(schema.ValueType()); err == nil {
			learnValue(&s.secrets, decoded, schema.Block.Attributes, false)
		}
	}
}

// learnValue adds the secrets in a value. attributes are those of the objects in it.
func learnValue(secrets *rest.Secrets, value tftypes.Value, attributes []*tfprotov6.SchemaAttribute, secret bool) {
	var text string
	var keyed map[string]tftypes.Value
	var listed []tftypes.Value
	switch {
	case value.IsNull() || !value.IsKnown():
	case value.As(&text) == nil:
		learnText(secrets, text, secret)
	case value.As(&keyed) == nil:
		for key, element := range keyed {
			inside, hidden := attributes, secret || ironic.IsSecretKey(key)
			if value.Type().Is(tftypes.Object{}) {
				inside = nil
				if i := slices.IndexFunc(attributes, func(a *tfprotov6.SchemaAttribute) bool { return a.Name == key }); i >= 0 {
					hidden = hidden || attributes[i].Sensitive || attributes[i].WriteOnly
					if nested := attributes[i].NestedType; nested != nil {
						inside = nested.Attributes
					}
				}
			}
			learnValue(secrets, element, inside, hidden)
		}
	case value.As(&listed) == nil:
		for _, element := range listed {
			learnValue(secrets, element, attributes, secret)
		}
	}
}

// learnText adds a text if it is secret, else the secrets in it: it may be a URL or a JSON document.
func learnText(secrets *rest.Secrets, text string, secret bool) {
	var document any
	if secret {
		secrets.Hide(text)
	}
	switch {
	case strings.HasPrefix(text, "{") || strings.HasPrefix(text, "["):
		_ = json.Unmarshal([]byte(text), &document) // another text has no keys
		learnDocument(secrets, document, secret)
	case !secret:
		secrets.HideURL(text)
	}
}

func learnDocument(secrets *rest.Secrets, document any, secret bool) {
	switch document := document.(type) {
	case string:
		learnText(secrets, document, secret)
	case map[string]any:
		for key, element := range document {
			learnDocument(secrets, element, secret || ironic.IsSecretKey(key))
		}
	case []any:
		for _, element := range document {
			learnDocument(secrets, element, secret)
		}
	}
}

// clean returns a text for people: without secrets, and printable.
func (s *Server) clean(text string) string { return rest.Printable(s.secrets.Redact(text)) }

// cleanAll cleans diagnostics. Every diagnostic of the provider passes here.
func (s *Server) cleanAll(diagnostics []*tfprotov6.Diagnostic) {
	for _, d := range diagnostics {
		d.Summary, d.Detail = s.clean(d.Summary), s.clean(d.Detail)
	}
}

func cleanEvent[Event any](s *Server, event Event) Event {
	switch e := any(&event).(type) {
	case *tfprotov6.ListResourceResult:
		e.DisplayName = rest.OneLine(e.DisplayName)
		s.cleanAll(e.Diagnostics)
	case *tfprotov6.InvokeActionEvent:
		switch inner := e.Type.(type) {
		case tfprotov6.ProgressInvokeActionEventType:
			inner.Message = s.clean(inner.Message)
			e.Type = inner
		case tfprotov6.CompletedInvokeActionEventType:
			s.cleanAll(inner.Diagnostics)
		}
	}
	return event
}

// schemas are the provider's schemas; empty ones if the framework refuses to make them.
type schemas struct {
	*tfprotov6.GetProviderSchemaResponse
	fingerprints map[string]framework.Fingerprints // by resource type
}

// knownSchemas returns the schemas. They are the same for all servers.
var knownSchemas = sync.OnceValue(func() schemas {
	known := schemas{&tfprotov6.GetProviderSchemaResponse{}, map[string]framework.Fingerprints{}}
	ctx := context.Background() //nolint:forbidigo // the framework makes no request for it
	made, err := providerserver.NewProtocol6(&metal{})().GetProviderSchema(ctx, &tfprotov6.GetProviderSchemaRequest{})
	if err == nil && made != nil {
		known.GetProviderSchemaResponse = made
	}
	for name, schema := range known.ResourceSchemas {
		known.fingerprints[name] = framework.NewFingerprints(schema)
	}
	return known
})
