package datasources_test

import (
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/notes"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

func TestFakeHostDataSource_qualification(t *testing.T) {
	s := site.StartFake(t, nil)
	steps := []any{map[string]any{"interface": "deploy", "step": "burnin_cpu"}}
	config, checks := s.Provider(), []statecheck.StateCheck{}
	for name, tt := range map[string]struct {
		note any
		want map[string]knownvalue.Check // the others are null; nil: the whole attribute
	}{
		"passed": {
			map[string]any{"passed": "2026-11-26T03:00:00Z", "serial": "S1", "steps": steps},
			map[string]knownvalue.Check{
				"passed_at": text("2026-11-26T03:00:00Z"), "serial_number": text("S1"), "steps": texts("deploy.burnin_cpu"),
			},
		},
		"failed": {
			map[string]any{"failed": "2026-11-26T03:00:00Z", "words": "a bad disk", "runbook": "burn-in"},
			map[string]knownvalue.Check{"failed_at": text("2026-11-26T03:00:00Z"), "words": text("a bad disk"), "runbook": text("burn-in")},
		},
		"begun": {
			map[string]any{"begun": "2026-11-26T03:00:00Z", "runbook": "burn-in"}, map[string]knownvalue.Check{"runbook": text("burn-in")},
		},
		"forged": {"yes", nil},
	} {
		s.Fake.Set(addNode(t, s, name, nil), "extra", map[string]any{notes.KeyQualification: tt.note})
		config += data("metal_host", name, "name = "+acctest.Quoted(s.Name(name)))
		var want knownvalue.Check = null
		if tt.want != nil {
			for _, key := range []string{"passed_at", "failed_at", "words", "serial_number", "runbook", "steps"} {
				if tt.want[key] == nil {
					tt.want[key] = null
				}
			}
			want = object(tt.want)
		}
		checks = append(checks, is("data.metal_host."+name, "qualification", want))
	}
	test(t, config, "", checks...)
}
