package acctest

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/provider"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

// Action is an action for Invoke: its type and its configuration, which has strings, booleans, and lists and maps of them. A nil value is
// null.
type Action struct {
	Type   string
	Config map[string]any
}

// Invoked is what a user sees of an action.
type Invoked struct {
	Failed bool
	Text   string // progress and diagnostics
}

// Invoke plans and invokes an action as Terraform does. A CLI that has actions does it, which is Terraform from 1.14 on; without one,
// Invoke calls the provider's server.
func Invoke(t *testing.T, s *site.Site, a Action, settings ...string) Invoked {
	t.Helper()
	if HasQuery(t) { // Terraform 1.14 has both
		w := NewWorkspace(t, s.Provider(settings...)+a.block())
		text, code := w.Run("apply", "-auto-approve", "-invoke=action."+a.Type+".it")
		return Invoked{code != 0, text}
	}
	if len(settings) > 0 {
		t.Fatal("only a CLI reads settings of the provider")
	}
	return StartActions(t, s).Invoke(t.Context(), a, func(string) {})
}

// Works is Invoke, and fails the test if the action fails or does not say all texts.
func Works(t *testing.T, s *site.Site, a Action, texts ...string) {
	t.Helper()
	got := Invoke(t, s, a)
	if got.Failed {
		t.Errorf("%s failed:\n%s", a.Type, got.Text)
	}
	Mention(t, got.Text, texts...)
}

// Refuses is Invoke, and fails the test unless the action fails and says all texts.
func Refuses(t *testing.T, s *site.Site, a Action, texts ...string) {
	t.Helper()
	got := Invoke(t, s, a)
	if !got.Failed {
		t.Errorf("%s worked:\n%s", a.Type, got.Text)
	}
	Mention(t, got.Text, texts...)
}

// block returns the HCL of an action with the name "it".
func (a Action) block() string {
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(a.Config)) {
		value, _ := json.Marshal(a.Config[name]) // JSON is HCL
		lines = append(lines, fmt.Sprintf("    %s = %s", name, value))
	}
	return fmt.Sprintf("action %q \"it\" {\n  config {\n%s\n  }\n}\n", a.Type, strings.Join(lines, "\n"))
}

// Actions is a provider server that is configured for a site, for the calls that a CLI sends for actions.
type Actions struct {
	t      *testing.T
	server *provider.Server
	kinds  map[string]*tfprotov6.ActionSchema
}

// StartActions returns a server that is configured for a site.
func StartActions(t *testing.T, s *site.Site) *Actions {
	t.Helper()
	server := provider.NewServer("test")
	schemas, err := server.GetProviderSchema(t.Context(), &tfprotov6.GetProviderSchemaRequest{})
	if err != nil {
		t.Fatal(err)
	}
	config := dynamic(t, schemas.Provider.ValueType(), map[string]any{
		"endpoint": s.Endpoint, "auth_type": "none",
		"poll_interval": "200ms",
	})
	configured, err := server.ConfigureProvider(t.Context(), &tfprotov6.ConfigureProviderRequest{
		TerraformVersion: "1.14.0",
		Config:           config,
	})
	if err != nil || len(configured.Diagnostics) > 0 {
		t.Fatalf("configure: %v %v", err, configured.Diagnostics)
	}
	return &Actions{t, server, schemas.ActionSchemas}
}

// Invoke validates, plans and invokes an action. told is called with each message of its progress when it comes.
func (p *Actions) Invoke(ctx context.Context, a Action, told func(text string)) (got Invoked) {
	p.t.Helper()
	kind, exists := p.kinds[a.Type]
	if !exists {
		p.t.Fatalf("there is no action %s", a.Type)
	}
	config := dynamic(p.t, kind.Schema.ValueType(), a.Config)
	valid, err := p.server.ValidateActionConfig(ctx, &tfprotov6.ValidateActionConfigRequest{ActionType: a.Type, Config: config})
	if err != nil {
		p.t.Fatal(err)
	}
	if got.add(valid.Diagnostics); got.Failed {
		return got
	}
	plan, err := p.server.PlanAction(ctx, &tfprotov6.PlanActionRequest{ActionType: a.Type, Config: config})
	if err != nil {
		p.t.Fatal(err)
	}
	if got.add(plan.Diagnostics); got.Failed {
		return got
	}
	stream, err := p.server.InvokeAction(ctx, &tfprotov6.InvokeActionRequest{ActionType: a.Type, Config: config})
	if err != nil {
		p.t.Fatal(err)
	}
	completed := 0
	for event := range stream.Events {
		switch event := event.Type.(type) {
		case tfprotov6.ProgressInvokeActionEventType:
			got.Text += event.Message + "\n"
			told(event.Message)
		case tfprotov6.CompletedInvokeActionEventType:
			completed++
			got.add(event.Diagnostics)
		}
	}
	if completed != 1 {
		p.t.Errorf("the action completed %d times", completed)
	}
	return got
}

func (i *Invoked) add(diagnostics []*tfprotov6.Diagnostic) {
	for _, d := range diagnostics {
		i.Failed = i.Failed || d.Severity == tfprotov6.DiagnosticSeverityError
		i.Text += d.Summary + "\n" + d.Detail + "\n"
	}
}

// dynamic encodes a value of a type; what is missing in an object is null.
func dynamic(t *testing.T, kind tftypes.Type, from any) *tfprotov6.DynamicValue {
	t.Helper()
	encoded, err := tfprotov6.NewDynamicValue(kind, valueOf(kind, from))
	if err != nil {
		t.Fatal(err)
	}
	return &encoded
}

func valueOf(kind tftypes.Type, from any) tftypes.Value {
	if from == nil {
		return tftypes.NewValue(kind, nil)
	}
	switch kind := kind.(type) {
	case tftypes.Object:
		object, _ := from.(map[string]any)
		values := map[string]tftypes.Value{}
		for name, attribute := range kind.AttributeTypes {
			values[name] = valueOf(attribute, object[name])
		}
		return tftypes.NewValue(kind, values)
	case tftypes.List:
		list, _ := from.([]any)
		values := make([]tftypes.Value, len(list))
		for i, element := range list {
			values[i] = valueOf(kind.ElementType, element)
		}
		return tftypes.NewValue(kind, values)
	}
	return tftypes.NewValue(kind, from)
}
