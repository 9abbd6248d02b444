package resources

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/schema/validator"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
)

// bmcAddress accepts what ironic.ParseBMC does.
type bmcAddress struct{}

func (bmcAddress) Description(context.Context) string               { return "must be the address of a BMC" }
func (v bmcAddress) MarkdownDescription(ctx context.Context) string { return v.Description(ctx) }

func (bmcAddress) ValidateString(_ context.Context, req validator.StringRequest, resp *validator.StringResponse) {
	if !isSet(req.ConfigValue) {
		return
	}
	if _, err := ironic.ParseBMC(req.ConfigValue.ValueString()); err != nil {
		resp.Diagnostics.AddAttributeError(req.Path, "Not the address of a BMC", ironic.Sentence(err))
	}
}

// macAddress accepts MAC addresses in the one spelling that Ironic uses, and tells it to who writes another.
type macAddress struct{}

func (macAddress) Description(context.Context) string {
	return "must be a MAC address such as 52:54:00:aa:bb:01"
}
func (v macAddress) MarkdownDescription(ctx context.Context) string { return v.Description(ctx) }

func (v macAddress) ValidateString(ctx context.Context, req validator.StringRequest, resp *validator.StringResponse) {
	if !isSet(req.ConfigValue) || macPattern.MatchString(req.ConfigValue.ValueString()) {
		return
	}
	text := strings.ToLower(strings.ReplaceAll(req.ConfigValue.ValueString(), "-", ":"))
	if macPattern.MatchString(text) {
		resp.Diagnostics.AddAttributeError(req.Path, "MAC address in another spelling", fmt.Sprintf("Write %q as %q, as Ironic does.", req.ConfigValue.ValueString(), text))
		return
	}
	resp.Diagnostics.AddAttributeError(req.Path, "Not a MAC address", fmt.Sprintf("%q %s.", req.ConfigValue.ValueString(), v.Description(ctx)))
}

// patchableKey accepts keys that Ironic lets one change later on.
type patchableKey struct{}

func (patchableKey) Description(context.Context) string {
	return "must have only letters, digits, underscores and hyphens: Ironic can change no other keys"
}
func (v patchableKey) MarkdownDescription(ctx context.Context) string { return v.Description(ctx) }

func (v patchableKey) ValidateString(ctx context.Context, req validator.StringRequest, resp *validator.StringResponse) {
	if isSet(req.ConfigValue) && !ironic.ValidKey(req.ConfigValue.ValueString()) {
		resp.Diagnostics.AddAttributeError(req.Path, "Key that Ironic cannot change", fmt.Sprintf("%q %s.", req.ConfigValue.ValueString(), v.Description(ctx)))
	}
}

// capability accepts names and values that fit into Ironic's "name:value,name:value".
type capability struct{}

func (capability) Description(context.Context) string {
	return "must not be empty nor contain a colon or comma"
}
func (v capability) MarkdownDescription(ctx context.Context) string { return v.Description(ctx) }

func (v capability) ValidateString(ctx context.Context, req validator.StringRequest, resp *validator.StringResponse) {
	if text := req.ConfigValue.ValueString(); isSet(req.ConfigValue) && (text == "" || strings.ContainsAny(text, ":,")) {
		resp.Diagnostics.AddAttributeError(req.Path, "Not a capability", fmt.Sprintf("%q %s.", text, v.Description(ctx)))
	}
}

// notUUID refuses names that Ironic would take for a UUID.
type notUUID struct{}

func (notUUID) Description(context.Context) string               { return "must not be a UUID" }
func (v notUUID) MarkdownDescription(ctx context.Context) string { return v.Description(ctx) }

func (v notUUID) ValidateString(ctx context.Context, req validator.StringRequest, resp *validator.StringResponse) {
	if isSet(req.ConfigValue) && uuidPattern.MatchString(req.ConfigValue.ValueString()) {
		resp.Diagnostics.AddAttributeError(req.Path, "Not a name", fmt.Sprintf("%q %s.", req.ConfigValue.ValueString(), v.Description(ctx)))
	}
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
			resp.Diagnostics.AddAttributeError(req.Path, "Key that Ironic cannot change", fmt.Sprintf("%q %s.", key, patchableKey{}.Description(ctx)))
		}
		if ironic.OwnKey(key) {
			resp.Diagnostics.AddAttributeError(req.Path, "Reserved key", fmt.Sprintf("%q is the provider's own.", key))
		}
	}
}

// imageURL accepts what Ironic takes as image_source.
type imageURL struct{}

func (imageURL) Description(context.Context) string {
	return "must begin with http://, https://, file://, oci:// or glance://"
}
func (v imageURL) MarkdownDescription(ctx context.Context) string { return v.Description(ctx) }

func (v imageURL) ValidateString(ctx context.Context, req validator.StringRequest, resp *validator.StringResponse) {
	if !isSet(req.ConfigValue) {
		return
	}
	scheme, rest, _ := strings.Cut(req.ConfigValue.ValueString(), "://")
	if !slices.Contains([]string{"http", "https", "file", "oci", "glance"}, scheme) || rest == "" {
		resp.Diagnostics.AddAttributeError(req.Path, "Not the URL of an image", fmt.Sprintf("%q %s.", req.ConfigValue.ValueString(), v.Description(ctx)))
	}
}

// checksum accepts checksums and URLs of files of them.
type checksum struct{}

var checksumPattern = regexp.MustCompile(`^([0-9a-fA-F]{32}|[0-9a-fA-F]{64}|[0-9a-fA-F]{128}|(https?|file)://.+)$`)

func (checksum) Description(context.Context) string {
	return "must be an MD5, SHA-256 or SHA-512 checksum in hexadecimal (32, 64 or 128 digits), or the URL of a file of checksums"
}
func (v checksum) MarkdownDescription(ctx context.Context) string { return v.Description(ctx) }

func (v checksum) ValidateString(ctx context.Context, req validator.StringRequest, resp *validator.StringResponse) {
	if isSet(req.ConfigValue) && !checksumPattern.MatchString(req.ConfigValue.ValueString()) {
		resp.Diagnostics.AddAttributeError(req.Path, "Not a checksum", fmt.Sprintf("%q %s.", req.ConfigValue.ValueString(), v.Description(ctx)))
	}
}

// notNegativeDuration accepts durations such as "90s".
type notNegativeDuration struct{}

func (notNegativeDuration) Description(context.Context) string {
	return "must be a duration such as \"90s\" or \"5m\""
}

func (v notNegativeDuration) MarkdownDescription(ctx context.Context) string {
	return v.Description(ctx)
}

func (v notNegativeDuration) ValidateString(ctx context.Context, req validator.StringRequest, resp *validator.StringResponse) {
	if !isSet(req.ConfigValue) {
		return
	}
	if d, err := time.ParseDuration(req.ConfigValue.ValueString()); err != nil || d < 0 {
		resp.Diagnostics.AddAttributeError(req.Path, "Not a duration", fmt.Sprintf("%q %s.", req.ConfigValue.ValueString(), v.Description(ctx)))
	}
}

// timestamp accepts times in the form of RFC 3339.
type timestamp struct{}

func (timestamp) Description(context.Context) string {
	return "must be a time such as 2026-05-01T12:00:00Z (RFC 3339)"
}
func (v timestamp) MarkdownDescription(ctx context.Context) string { return v.Description(ctx) }

func (v timestamp) ValidateString(ctx context.Context, req validator.StringRequest, resp *validator.StringResponse) {
	if !isSet(req.ConfigValue) {
		return
	}
	if _, err := time.Parse(time.RFC3339, req.ConfigValue.ValueString()); err != nil {
		resp.Diagnostics.AddAttributeError(req.Path, "Not a time", fmt.Sprintf("%q %s.", req.ConfigValue.ValueString(), v.Description(ctx)))
	}
}
