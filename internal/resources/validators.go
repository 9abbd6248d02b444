package resources

import (
	"context"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
)

// text is a rule for strings.
type text struct {
	summary string // of the error
	must    string // what a string must be
	ok      func(string) bool
	why     func(string) string // what is wrong, where that can be said better; "": it cannot
}

// Description tells the rule.
func (r text) Description(context.Context) string { return r.must }

// MarkdownDescription tells the rule.
func (r text) MarkdownDescription(context.Context) string { return r.must }

// ValidateString refuses a string that does not keep to the rule.
func (r text) ValidateString(_ context.Context, req validator.StringRequest, resp *validator.StringResponse) {
	value := req.ConfigValue.ValueString()
	if !isSet(req.ConfigValue) || r.ok(value) {
		return
	}
	detail := ""
	if r.why != nil {
		detail = r.why(value)
	}
	if detail == "" {
		detail = fmt.Sprintf("%q %s.", value, r.must)
	}
	resp.Diagnostics.AddAttributeError(req.Path, r.summary, detail)
}

var (
	checksumPattern = regexp.MustCompile(`^([0-9a-fA-F]{32}|[0-9a-fA-F]{64}|[0-9a-fA-F]{128}|(https?|file)://.+)$`)
	hostnamePattern = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?)*$`)
)

// The rules for strings of several resources.
var (
	bmcAddress = text{
		summary: "Not the address of a BMC", must: "must be the address of a BMC",
		ok: func(s string) bool { _, err := ironic.ParseBMC(s); return err == nil },
		why: func(s string) string {
			_, err := ironic.ParseBMC(s)
			return ironic.Sentence(err)
		},
	}
	// macAddress accepts the one spelling that Ironic uses, and tells it to who writes another.
	macAddress = text{
		summary: "Not a MAC address", must: "must be a MAC address such as 52:54:00:aa:bb:01", ok: macPattern.MatchString,
		why: func(s string) string {
			if other := strings.ToLower(strings.ReplaceAll(s, "-", ":")); macPattern.MatchString(other) {
				return fmt.Sprintf("Write %q as %q, as Ironic does.", s, other)
			}
			return ""
		},
	}
	patchableKey = text{
		summary: "Key that Ironic cannot change", must: "must have only letters, digits, underscores and hyphens: Ironic can change no other keys", ok: ironic.ValidKey,
	}
	// capability accepts names and values that fit into Ironic's "name:value,name:value".
	capability = text{
		summary: "Not a capability", must: "must not be empty nor contain a colon or comma",
		ok: func(s string) bool { return s != "" && !strings.ContainsAny(s, ":,") },
	}
	// notUUID refuses names that Ironic would take for a UUID.
	notUUID  = text{summary: "Not a name", must: "must not be a UUID", ok: func(s string) bool { return !uuidPattern.MatchString(s) }}
	imageURL = text{
		summary: "Not the URL of an image", must: "must begin with http://, https://, file://, oci:// or glance://",
		ok: func(s string) bool {
			scheme, rest, _ := strings.Cut(s, "://")
			return slices.Contains([]string{"http", "https", "file", "oci", "glance"}, scheme) && rest != ""
		},
	}
	checksum = text{
		summary: "Not a checksum", must: "must be an MD5, SHA-256 or SHA-512 checksum in hexadecimal (32, 64 or 128 digits), or the URL of a file of checksums",
		ok: checksumPattern.MatchString,
	}
	hostname = text{
		summary: "Not a host name", must: "must be a host name: labels of at most 63 letters, digits and hyphens, separated by dots",
		ok: func(s string) bool { return len(s) <= 253 && hostnamePattern.MatchString(s) },
	}
	notNegativeDuration = text{
		summary: "Not a duration", must: "must be a duration such as \"90s\" or \"5m\"",
		ok: func(s string) bool { d, err := time.ParseDuration(s); return err == nil && d >= 0 },
	}
	regularExpression = text{
		summary: "Not a regular expression", must: "must be a regular expression",
		ok: func(s string) bool { _, err := regexp.Compile(s); return err == nil },
		why: func(s string) string {
			_, err := regexp.Compile(s)
			return fmt.Sprintf("%q: %v.", s, err)
		},
	}
	cidr = text{
		summary: "Not a network", must: "must be a network such as 10.12.0.0/24",
		ok: func(s string) bool { _, err := netip.ParsePrefix(s); return err == nil },
	}
	timestamp = text{
		summary: "Not a time", must: "must be a time such as 2026-05-01T12:00:00Z (RFC 3339)",
		ok: func(s string) bool { _, err := time.Parse(time.RFC3339, s); return err == nil },
	}
)

// timeoutsAttribute is timeouts, which says of a wrong duration how to write one.
func timeoutsAttribute(ctx context.Context, opts timeouts.Opts) schema.Attribute {
	nested, _ := timeouts.Attributes(ctx, opts).(schema.SingleNestedAttribute)
	for name, attribute := range nested.Attributes {
		limit, _ := attribute.(schema.StringAttribute)
		limit.Validators = []validator.String{notNegativeDuration}
		nested.Attributes[name] = limit
	}
	return nested
}

// jsonObjectValue accepts objects with keys that Ironic lets one change later on.
type jsonObjectValue struct{}

func (jsonObjectValue) Description(context.Context) string {
	return "must be an object, such as { team = \"web\" }"
}

func (v jsonObjectValue) MarkdownDescription(ctx context.Context) string { return v.Description(ctx) }

func (v jsonObjectValue) ValidateDynamic(ctx context.Context, req validator.DynamicRequest, resp *validator.DynamicResponse) {
	if !isSet(req.ConfigValue) || req.ConfigValue.IsUnderlyingValueUnknown() || req.ConfigValue.IsUnderlyingValueNull() {
		return
	}
	m, ok := toJSON(req.ConfigValue).(map[string]any)
	if !ok {
		resp.Diagnostics.AddAttributeError(req.Path, "Not an object", "It "+v.Description(ctx)+".")
		return
	}
	for key := range m {
		if !ironic.ValidKey(key) {
			resp.Diagnostics.AddAttributeError(req.Path, "Key that Ironic cannot change", fmt.Sprintf("%q %s.", key, patchableKey.must))
		}
		if ironic.OwnKey(key) {
			resp.Diagnostics.AddAttributeError(req.Path, "Reserved key", fmt.Sprintf("%q is the provider's own.", key))
		}
	}
}
