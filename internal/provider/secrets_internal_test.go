package provider

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
)

// notOffered are the RPCs that have diagnostics and no text of others: the provider has no ephemeral resources, and its schemas are
// constants.
var notOffered = []string{
	"OpenEphemeralResource", "RenewEphemeralResource", "CloseEphemeralResource", "ValidateEphemeralResourceConfig",
	"GetMetadata", "GetProviderSchema", "GetResourceIdentitySchemas",
}

// Every diagnostic passes the filter: the inner server has no method, so each call panics, and what is said of it has a word that is
// secret.
func TestServer_cleansEveryAnswer(t *testing.T) {
	t.Parallel()
	for _, calls := range append(optional, reflect.TypeFor[tfprotov6.ProviderServer]()) {
		for i := range calls.NumMethod() {
			method := calls.Method(i)
			answers := method.Type.Out(0).Elem()
			_, says := answers.FieldByName("Diagnostics")
			if _, fails := answers.FieldByName("Error"); fails {
				says = true
			}
			if !says && answers.NumField() > 0 && !strings.HasSuffix(answers.Name(), "Stream") || answers.NumField() == 0 ||
				slices.Contains(notOffered, method.Name) || method.Name == "StopProvider" {
				continue
			}
			t.Run(method.Name, func(t *testing.T) {
				t.Parallel()
				s := &Server{ProviderServer: &clumsy{}}
				s.secrets.Hide("invalid memory address")
				s.secrets.Hide("index out of range")
				request := reflect.New(method.Type.In(1).Elem())
				answer := reflect.ValueOf(s).MethodByName(method.Name).Call([]reflect.Value{reflect.ValueOf(t.Context()), request})
				said := saidIn(t, answer[0].Interface())
				if len(said) != 1 || !strings.Contains(said[0].Detail, "******") {
					t.Errorf("diagnostics %v are not cleaned", said)
				}
			})
		}
	}
}

func TestCleanEvent(t *testing.T) {
	t.Parallel()
	s := &Server{}
	s.secrets.Hide("hunter22")
	const from, want = "a\x1b[2J \u202ehunter22", "a\ufffd[2J \ufffd******"
	events := map[string]string{}
	told, _ := cleanEvent(s, tfprotov6.InvokeActionEvent{Type: tfprotov6.ProgressInvokeActionEventType{
		Message: from,
	}}).Type.(tfprotov6.ProgressInvokeActionEventType)
	events["progress"] = told.Message
	done, _ := cleanEvent(s, tfprotov6.InvokeActionEvent{Type: tfprotov6.CompletedInvokeActionEventType{
		Diagnostics: []*tfprotov6.Diagnostic{{Summary: from}},
	}}).Type.(tfprotov6.CompletedInvokeActionEventType)
	events["end of an action"] = done.Diagnostics[0].Summary
	listed := cleanEvent(s, tfprotov6.ListResourceResult{
		DisplayName: "a\x1b[2J \u202e******",
		Diagnostics: []*tfprotov6.Diagnostic{{Detail: from}},
	})
	events["listed"], events["name"] = listed.Diagnostics[0].Detail, listed.DisplayName
	for what, got := range events {
		if got != want {
			t.Errorf("%s: %q, want %q", what, got, want)
		}
	}
}
