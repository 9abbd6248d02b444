package guides_test

import (
	"encoding/json"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

// TestFakeExamples_actions lets a CLI with actions check the examples of actions.
func TestFakeExamples_actions(t *testing.T) {
	t.Parallel()
	if !acctest.HasQuery(t) { // Terraform 1.14 has both
		t.Skip("this CLI has no actions")
	}
	s := site.StartFake(t, nil)
	for _, file := range glob(t, examples, "actions/*/action.tf") {
		w := acctest.NewWorkspace(t, s.Provider()+read(t, file))
		write(t, filepath.Join(w.Dir, "boot.cfg"), "")
		w.Must("validate")
	}
}

// The operating system shuts down before its machine is undeployed. If it does not, on_failure says whether a replacement goes on, and
// "destroy" goes on in any case.
func TestFakeExamples_beforeDestroy(t *testing.T) {
	t.Parallel()
	text := read(t, examples+"/actions/metal_power/before_destroy.tf")
	acctest.SkipBelow(t, "before_destroy and on_failure", 16, 0)
	replace := []string{"apply", "-auto-approve", "-replace=metal_deployment.worker"}
	for name, tt := range map[string]struct {
		fake   *fakeironic.Server
		text   string
		run    []string
		fails  bool
		orders []string // power states and verbs
		says   string
	}{
		"shuts down": {
			&fakeironic.Server{}, text, replace, false,
			[]string{"soft power off", "deleted", "active"},
			"1 added, 0 changed, 1 destroyed",
		},
		"halt": {&fakeironic.Server{NoSoftPower: true}, text, replace, true, nil, "cannot ask an operating system to shut down"},
		"continue": {
			&fakeironic.Server{NoSoftPower: true}, strings.ReplaceAll(text, "= halt", "= continue"), replace, false,
			[]string{"deleted", "active"},
			"Warning: Could not",
		},
		"destroy": {
			&fakeironic.Server{NoSoftPower: true}, text,
			[]string{"destroy", "-auto-approve"},
			false,
			[]string{"deleted"},
			"Warning: Could not",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := site.StartFake(t, tt.fake)
			node := site.AddNode(t, s, "n1", map[string]any{"resource_class": "baremetal"})
			w := exampleWorkspace(t, s, tt.text)
			w.RealCLI()
			w.Must("apply", "-auto-approve")
			s.Fake.Set(node, "power_state", "power on")
			s.Fake.ResetRequests()
			output, code := w.Run(tt.run...)
			if (code != 0) != tt.fails {
				t.Errorf("it ended with %d:\n%s", code, output)
			}
			acctest.Mention(t, output, tt.says)
			if got := ordered(s.Fake.Requests()); !slices.Equal(got, tt.orders) {
				t.Errorf("sent %v, want %v", got, tt.orders)
			}
			w.Must("destroy", "-auto-approve")
		})
	}
}

// ordered are the power states and verbs that accepted requests have ordered.
func ordered(requests []fakeironic.Request) (all []string) {
	for _, r := range requests {
		var body struct{ Target string }
		if r.Method == http.MethodPut && r.Status == http.StatusAccepted && json.Unmarshal([]byte(r.Body), &body) == nil {
			all = append(all, body.Target)
		}
	}
	return all
}

// The CLI of most test runs has no actions, so this test checks what that CLI cannot: that the examples declare what they refer to.
func TestExamples_actionsDeclareWhatTheyReferTo(t *testing.T) {
	t.Parallel()
	for _, file := range glob(t, examples, "actions/*/action.tf") {
		parsed, problems := hclsyntax.ParseConfig([]byte(read(t, file)), file, hcl.InitialPos)
		if problems.HasErrors() {
			t.Fatal(problems)
		}
		body, ok := parsed.Body.(*hclsyntax.Body)
		if !ok {
			t.Fatalf("%s: the body is %T", file, parsed.Body)
		}
		declared := map[string]bool{}
		for _, block := range body.Blocks {
			address := strings.Join(block.Labels, ".")
			if block.Type != "resource" {
				address = block.Type + "." + address
			}
			declared[address] = true
		}
		references := 0
		hclsyntax.VisitAll(body, func(node hclsyntax.Node) hcl.Diagnostics { //nolint:errcheck // the function finds no problems
			if expression, ok := node.(*hclsyntax.ScopeTraversalExpr); ok && !isKeyword(expression) {
				references++
				if address := resourceOf(expression.Traversal); !declared[address] {
					t.Errorf("%s:%d refers to %s, which it does not declare", file, expression.Range().Start.Line, address)
				}
			}
			return nil
		})
		if references == 0 {
			t.Errorf("%s refers to nothing", file)
		}
	}
}

// isKeyword reports whether an expression is a word such as after_update.
func isKeyword(e *hclsyntax.ScopeTraversalExpr) bool { return len(e.Traversal) == 1 }

// resourceOf returns the address at the beginning of a reference, such as data.metal_host.r1.
func resourceOf(reference hcl.Traversal) string {
	parts := 2
	if root := reference.RootName(); root == "data" || root == "action" {
		parts = 3
	}
	names := []string{reference.RootName()}
	for _, step := range reference[1:min(parts, len(reference))] {
		if attribute, ok := step.(hcl.TraverseAttr); ok {
			names = append(names, attribute.Name)
		}
	}
	return strings.Join(names, ".")
}
