package language

import (
	"fmt"
	"slices"
	"sync"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// Diagnostic is a warning or an error for the user.
type Diagnostic struct {
	IsError         bool
	Summary, Detail string
	Address         string     // of the resource; "": none
	Subject         *hcl.Range // of the configuration; nil: none
}

// Diagnostics are those of a run. Several steps may add to them.
type Diagnostics struct {
	mu  sync.Mutex
	All []Diagnostic
}

// Add adds diagnostics.
func (d *Diagnostics) Add(more ...Diagnostic) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.All = append(d.All, more...)
}

// Forget drops diagnostics, which the next step finds again if they still hold.
func (d *Diagnostics) Forget(summary string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.All = slices.DeleteFunc(d.All, func(one Diagnostic) bool { return one.Summary == summary })
}

// Warnings returns how many warnings there are of an address.
func (d *Diagnostics) Warnings(address string) (count int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, one := range d.All {
		if one.Address == address && !one.IsError {
			count++
		}
	}
	return count
}

// DropWarnings drops the warnings of an address but the first ones.
func (d *Diagnostics) DropWarnings(address string, first int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.All = slices.DeleteFunc(d.All, func(one Diagnostic) bool {
		if one.Address != address || one.IsError {
			return false
		}
		first--
		return first < 0
	})
}

// Fail adds an error.
func (d *Diagnostics) Fail(summary, detail string, args ...any) {
	d.Add(Diagnostic{IsError: true, Summary: summary, Detail: fmt.Sprintf(detail, args...)})
}

// AddHCL adds what the evaluation of a configuration reports, and says whether there is an error. Several blocks may report the same of a
// variable or an output.
func (d *Diagnostics) AddHCL(address string, from hcl.Diagnostics) (failed bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, one := range from {
		made := Diagnostic{
			IsError: one.Severity == hcl.DiagError, Summary: one.Summary, Detail: one.Detail, Address: address, Subject: one.Subject,
		}
		known := slices.ContainsFunc(d.All, func(other Diagnostic) bool {
			same := made.Subject != nil && other.Subject != nil && *made.Subject == *other.Subject
			return same && made.Summary == other.Summary && made.Detail == other.Detail
		})
		if !known {
			d.All = append(d.All, made)
		}
	}
	return from.HasErrors()
}

// AddProvider adds what a provider reports of a block, and says whether there is an error. body is the block; nil: none.
func (d *Diagnostics) AddProvider(address string, body hcl.Body, block *hcl.Range, from []*tfprotov6.Diagnostic) (failed bool) {
	for _, one := range from {
		made := Diagnostic{
			IsError: one.Severity == tfprotov6.DiagnosticSeverityError, Summary: one.Summary, Detail: one.Detail,
			Address: address, Subject: block,
		}
		if body != nil && one.Attribute != nil {
			made.Subject = attributeRange(body, one.Attribute, block)
		}
		failed = failed || made.IsError
		d.Add(made)
	}
	return failed
}

// attributeRange returns where an attribute is set; the block if it is not. As core does, it looks for the last name of the path in the
// block, and not in attributes of objects.
func attributeRange(body hcl.Body, path *tftypes.AttributePath, block *hcl.Range) *hcl.Range {
	attributes, _ := body.JustAttributes() // what is no attribute does not matter
	steps := path.Steps()
	if len(steps) == 0 {
		return block
	}
	if _, isName := steps[len(steps)-1].(tftypes.AttributeName); !isName && len(steps) > 1 {
		steps = steps[:len(steps)-1]
	}
	if name, is := steps[len(steps)-1].(tftypes.AttributeName); is && attributes[string(name)] != nil {
		found := attributes[string(name)].Expr.Range()
		return &found
	}
	return block
}

// HasErrors reports whether one of them is an error.
func (d *Diagnostics) HasErrors() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.ContainsFunc(d.All, func(one Diagnostic) bool { return one.IsError })
}
