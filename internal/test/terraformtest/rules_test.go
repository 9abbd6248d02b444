package terraformtest_test

import (
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest"
)

func TestFakeRules_endPlanOrApply(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		config  string
		module  string
		plan    bool     // succeeds
		want    []string // in the output of an apply
		nothing bool     // is created
	}{
		"validation": {
			config: "variable \"size\" {\n  default = 3\n  validation {\n    condition     = var.size > 5\n    error_message = \"Size " +
				"${var.size}.\"\n  }\n}\n" + created("x", ""),
			want:    []string{"Error: Invalid value for variable", "Size 3."},
			nothing: true,
		},
		"validation of a module's variable": {
			config: "module \"m\" {\n  source = \"./m\"\n  size   = 3\n}\n",
			module: "variable \"size\" {\n  validation {\n    condition     = var.size > 5\n    error_message = \"Size " +
				"${var.size}.\"\n  }\n}\n" + created("x", ""),
			want:    []string{"Error: Invalid value for variable", "Size 3."},
			nothing: true,
		},
		"null for a variable that is not nullable": {
			config:  "module \"m\" {\n  source = \"./m\"\n  size   = null\n}\n",
			module:  "variable \"size\" {\n  nullable = false\n}\n" + created("x", ""),
			want:    []string{"required variable may not be set to null"},
			nothing: true,
		},
		"precondition": {
			config: created("x", "precondition {\n    condition     = terraform.workspace == \"other\"\n    error_message = "+
				"\"Not now.\"\n  }"),
			want:    []string{"Error: Resource precondition failed", "Not now."},
			nothing: true,
		},
		"postcondition": {
			config: created("x", "postcondition {\n    condition     = self.output == \"y\"\n    error_message = \"Got "+
				"${self.output}.\"\n  }"),
			plan: true,
			want: []string{"Error: Resource postcondition failed", "Got x."},
		},
		"postcondition that the plan knows": {
			config: created("x", "postcondition {\n    condition     = self.input == \"y\"\n    error_message = \"Wants "+
				"${self.input}.\"\n  }"),
			want:    []string{"Error: Resource postcondition failed", "Wants x."},
			nothing: true,
		},
		"precondition of a module's output": {
			config: "module \"m\" {\n  source = \"./m\"\n}\noutput \"o\" {\n  value = module.m.o\n}\n",
			module: "locals {\n  n = 1\n}\noutput \"o\" {\n  value = 1\n  precondition {\n    condition     = local.n > 2\n " +
				"   error_message = \"No output.\"\n  }\n}\n",
			want:    []string{"Error: Module output value precondition failed", "No output."},
			nothing: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := open(t, tt.config, map[string]string{"m/main.tf": tt.module})
			output, code := w.Run("plan")
			if worked := code == 0; worked != tt.plan {
				t.Errorf("the plan works: %t, want %t\n%s", worked, tt.plan, output)
			}
			if !tt.plan {
				acctest.Mention(t, output, tt.want...)
			}
			acctest.Fails(t, w, acctest.Apply(), tt.want...)
			if isCreated := strings.Contains(w.State(), `"terraform_data"`); isCreated == tt.nothing {
				t.Errorf("a resource is in the state: %t", isCreated)
			}
		})
	}
}

// created returns a resource with an input, and with what its lifecycle block has.
func created(input, lifecycle string) string {
	return "resource \"terraform_data\" \"d\" {\n  input = \"" + input + "\"\n  lifecycle {\n  " + lifecycle + "\n  }\n}\n"
}

func TestFakeRules_checksWarn(t *testing.T) {
	t.Parallel()
	w := open(t, created("x", "")+"check \"output\" {\n  assert {\n    condition     = terraform_data.d.output == \"y\"\n"+
		"    error_message = \"Got ${terraform_data.d.output}.\"\n  }\n}\n", nil)
	acctest.NeverMention(t, w.Must("plan"), "Got x.")
	acctest.Mention(t, w.Must("apply", "-auto-approve"), "Warning: Check block assertion failed", "Got x.", "1 added")
	output, _ := w.Plan()
	acctest.Mention(t, output, "Warning: Check block assertion failed", "Got x.", "No changes")
}
