package provider

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-framework/types/basetypes"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
)

type text struct {
	summary string // of the error
	must    string // what a string must be
	ok      func(string) bool
	why     func(string) string // a more specific message
}

// Description returns the rule.
func (r text) Description(context.Context) string { return r.must }

// MarkdownDescription returns the rule.
func (r text) MarkdownDescription(context.Context) string { return r.must }

// ValidateString adds an error for a string that breaks the rule.
func (r text) ValidateString(_ context.Context, req validator.StringRequest, resp *validator.StringResponse) {
	value := req.ConfigValue.ValueString()
	if req.ConfigValue.IsNull() || req.ConfigValue.IsUnknown() || r.ok(value) {
		return
	}
	detail := fmt.Sprintf("%q %s.", value, r.must)
	if r.why != nil {
		detail = r.why(value)
	}
	resp.Diagnostics.AddAttributeError(req.Path, r.summary, detail)
}

func isURL(s string) bool { return checkURL(s) == nil }

// checkURL returns an error for a text that is not an http or https URL without credentials. The error continues a sentence that
// starts with "The value".
func checkURL(text string) error {
	if fault := ironic.URLFault(text, "http", "https"); fault != "" {
		return errors.New(fault)
	}
	switch u, err := url.Parse(text); {
	case err != nil:
		return errors.New("is not a URL")
	case u.User != nil:
		return fmt.Errorf("contains credentials; use username and password")
	}
	return nil
}

var (
	endpointURL = text{
		summary: "Not the URL of an Ironic API", must: "must be an http or https URL", ok: isURL,
		why: func(s string) string {
			return fmt.Sprintf("The value %v. It must be a URL such as https://ironic.example.com:6385 (environment variable: "+
				"METAL_ENDPOINT).", checkURL(s))
		},
	}
	httpURL = text{
		summary: "Not a URL", must: "must be an http or https URL", ok: isURL,
		why: func(s string) string {
			return fmt.Sprintf("The value %v. It must be an http or https URL, such as http://ironic.example.com:5050.", checkURL(s))
		},
	}
	microversion = text{
		summary: "Not a microversion", must: "must be a microversion such as 1.82",
		ok: func(s string) bool { _, err := api.ParseMicroversion(s); return err == nil },
		why: func(s string) string {
			_, err := api.ParseMicroversion(s)
			return err.Error() + "."
		},
	}
	// pattern accepts the patterns of path.Match.
	pattern = text{
		summary: "Not a pattern", must: "must be a pattern such as *virtual-media",
		ok: func(s string) bool { _, err := path.Match(s, ""); return err == nil && s != "" },
	}
)

func durationAtLeast(least time.Duration) text {
	return text{
		summary: "Not a duration", must: fmt.Sprintf("must be a duration such as 30s or 5m, at least %s", least),
		ok: func(s string) bool { d, err := time.ParseDuration(s); return err == nil && d >= least },
	}
}

// getenv returns a variable of the provider's environment.
func (p *metal) getenv(name string) string {
	if p.environ == nil {
		return os.Getenv(name)
	}
	for _, variable := range slices.Backward(p.environ) { // the last one counts
		if value, is := strings.CutPrefix(variable, name+"="); is {
			return value
		}
	}
	return ""
}

func (p *metal) fromEnv(value types.String, variables ...string) string {
	if !value.IsNull() {
		return value.ValueString()
	}
	for _, name := range variables {
		if v := p.getenv(name); v != "" {
			return v
		}
	}
	return ""
}

// duration parses a duration that the schema has validated.
func duration(value types.String) time.Duration {
	d, err := time.ParseDuration(value.ValueString())
	if err != nil {
		return 0
	}
	return d
}

var objectAsOptions = basetypes.ObjectAsOptions{}
