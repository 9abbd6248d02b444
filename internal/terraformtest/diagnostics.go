package terraformtest

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// diagnostic is a warning or an error for the user.
type diagnostic struct {
	isError         bool
	summary, detail string
	address         string     // of the resource; "": none
	subject         *hcl.Range // of the configuration; nil: none
}

// diagnostics are those of a run. Several steps may add to them.
type diagnostics struct {
	mu  sync.Mutex
	all []diagnostic
}

func (d *diagnostics) add(more ...diagnostic) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.all = append(d.all, more...)
}

// fail adds an error.
func (d *diagnostics) fail(summary, detail string, args ...any) {
	d.add(diagnostic{isError: true, summary: summary, detail: fmt.Sprintf(detail, args...)})
}

// addHCL adds what the evaluation of a configuration reports, and says whether there is an error.
func (d *diagnostics) addHCL(address string, from hcl.Diagnostics) (failed bool) {
	for _, one := range from {
		d.add(diagnostic{isError: one.Severity == hcl.DiagError, summary: one.Summary, detail: one.Detail, address: address, subject: one.Subject})
	}
	return from.HasErrors()
}

// addProvider adds what a provider reports of a block, and says whether there is an error. body is the block; nil: none.
func (d *diagnostics) addProvider(address string, body hcl.Body, block *hcl.Range, from []*tfprotov6.Diagnostic) (failed bool) {
	for _, one := range from {
		made := diagnostic{isError: one.Severity == tfprotov6.DiagnosticSeverityError, summary: one.Summary, detail: one.Detail, address: address, subject: block}
		if body != nil && one.Attribute != nil {
			made.subject = attributeRange(body, one.Attribute, block)
		}
		failed = failed || made.isError
		d.add(made)
	}
	return failed
}

// attributeRange returns where an attribute is set; the block if it is not.
func attributeRange(body hcl.Body, path *tftypes.AttributePath, block *hcl.Range) *hcl.Range {
	attributes, _ := body.JustAttributes() // what is no attribute does not matter
	if len(path.Steps()) == 0 {
		return block
	}
	if name, is := path.Steps()[0].(tftypes.AttributeName); is && attributes[string(name)] != nil {
		found := attributes[string(name)].Expr.Range()
		return &found
	}
	return block
}

func (d *diagnostics) hasErrors() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.ContainsFunc(d.all, func(one diagnostic) bool { return one.isError })
}

// text prints diagnostics as a CLI does: warnings first, and those of one summary together.
func (d *diagnostics) text(c *config) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	var out strings.Builder
	for _, wantError := range []bool{false, true} {
		seen := map[string]int{}
		if !wantError {
			for _, one := range d.all {
				if !one.isError && one.subject != nil {
					seen[one.summary]++
				}
			}
		}
		for _, one := range d.all {
			if one.isError != wantError {
				continue
			}
			if n := seen[one.summary]; !wantError && one.subject != nil {
				if seen[one.summary] = 0; n == 0 {
					continue
				}
				one.detail += similar(n - 1)
			}
			out.WriteString(one.text(c))
		}
	}
	return out.String()
}

func similar(n int) string {
	switch n {
	case 0:
		return ""
	case 1:
		return "\n\n(and one more similar warning elsewhere)"
	}
	return fmt.Sprintf("\n\n(and %d more similar warnings elsewhere)", n)
}

func (d diagnostic) text(c *config) string {
	var lines []string
	if d.isError {
		lines = append(lines, "Error: "+d.summary, "")
	} else {
		lines = append(lines, "Warning: "+d.summary, "")
	}
	if d.address != "" {
		lines = append(lines, "  with "+d.address+",")
	}
	if d.subject != nil && c != nil {
		lines = append(lines, c.snippet(d.subject)...)
	}
	if d.address != "" || d.subject != nil {
		lines = append(lines, "")
	}
	lines = append(lines, strings.Split(d.detail, "\n")...)
	return "╷\n│ " + strings.Join(lines, "\n│ ") + "\n╵\n"
}

// snippet quotes a part of the configuration.
func (c *config) snippet(of *hcl.Range) []string {
	file := c.files[of.Filename]
	if file == nil {
		return nil
	}
	in := ""
	if holder := c.holder(of); holder != "" {
		in = ", in " + holder
	}
	lines := []string{fmt.Sprintf("  on %s line %d%s:", of.Filename, of.Start.Line, in)}
	for i, line := range strings.Split(string(file.Bytes), "\n") {
		if i+1 >= of.Start.Line && i+1 <= of.End.Line {
			lines = append(lines, fmt.Sprintf("%4d: %s", i+1, line))
		}
	}
	return lines
}
