package guides_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

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
