package framework

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework-validators/mapvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/setvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/clock"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/document"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/rest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/driverinfo"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/failure"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/notes"
)

type text struct {
	summary string // of the error
	must    string // what a string must be
	ok      func(string) bool
	why     func(string) string // a more specific message; "": none
	hides   bool                // the message does not show the string, which may have secrets
	warns   bool                // it is a warning
}

// Description returns the rule.
func (r text) Description(context.Context) string { return r.must }

// MarkdownDescription returns the rule.
func (r text) MarkdownDescription(context.Context) string { return r.must }

// ValidateString adds an error for a string that breaks the rule.
func (r text) ValidateString(_ context.Context, req validator.StringRequest, resp *validator.StringResponse) {
	if IsSet(req.ConfigValue) {
		r.Check(req.Path, req.ConfigValue.ValueString(), &resp.Diagnostics)
	}
}

// Check adds an error, or a warning, for a string that breaks the rule.
func (r text) Check(at path.Path, value string, diags *diag.Diagnostics) {
	if r.ok(value) {
		return
	}
	detail := ""
	switch {
	case r.hides:
		detail = "The value " + r.must + "."
	case r.why != nil:
		detail = r.why(value)
	}
	detail = cmp.Or(detail, fmt.Sprintf("%q %s.", value, r.must))
	if r.warns {
		diags.AddAttributeWarning(at, r.summary, detail)
		return
	}
	diags.AddAttributeError(at, r.summary, detail)
}

var (
	checksumPattern = regexp.MustCompile(`^([0-9a-fA-F]{32}|[0-9a-fA-F]{64}|[0-9a-fA-F]{128})$`)
	packedPattern   = regexp.MustCompile(`(?i)\.(qcow2|raw|img|iso|vmdk|vhdx?)\.(xz|gz|bz2|zst|lz4|lzma|zip|7z)([?#]|$)`)
	hostnamePattern = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?)*$`)
)

var raidLevels = []string{"JBOD", "0", "1", "2", "5", "6", "1+0", "5+0", "6+0"}

// Rules for strings that several resources use.
var (
	BMCAddress = text{
		summary: "Not the address of a BMC", must: "must be the address of a BMC",
		ok: func(s string) bool { _, err := driverinfo.ParseBMC(s); return err == nil },
		why: func(s string) string {
			_, err := driverinfo.ParseBMC(s)
			return failure.Sentence(err)
		},
	}
	// MACAddress accepts the spelling that Ironic uses, and suggests it for any other.
	MACAddress = text{
		summary: "Not a MAC address", must: "must be a MAC address such as 52:54:00:aa:bb:01", ok: isCard, why: whyNoCard,
	}
	// RAIDLevel accepts Ironic's names of RAID levels, and suggests them for other usual names.
	RAIDLevel = text{
		summary: "Not a RAID level", must: "must be one of " + strings.Join(raidLevels, ", "), ok: func(s string) bool {
			return slices.Contains(raidLevels, s)
		},
		why: func(s string) string {
			bare := strings.Trim(strings.TrimPrefix(strings.ToUpper(s), "RAID"), " -_")
			for _, level := range raidLevels {
				if bare == level || bare == strings.ReplaceAll(level, "+", "") {
					return fmt.Sprintf("Write %q as %q, as Ironic does.", s, level)
				}
			}
			return ""
		},
	}
	// Trimmed accepts what a user types into a form. Ironic sends it as it is, and then no login succeeds.
	Trimmed = text{
		summary: "White space around a value", must: "must not begin or end with white space, such as the line break at the end of a " +
			"file: use trimspace()", ok: func(s string) bool { return !rest.Padded(s) }, hides: true,
	}
	patchableKey = text{
		summary: "Key that Ironic cannot change", must: "must have only letters, digits, underscores and hyphens: Ironic can change no " +
			"other keys", ok: ironic.ValidKey,
	}
	// Capability accepts names and values that fit into Ironic's "name:value,name:value".
	Capability = text{
		summary: "Not a capability", must: "must not be empty, contain a colon or comma, nor begin or end with white space",
		ok: func(s string) bool { return s != "" && !strings.ContainsAny(s, ":,") && !rest.Padded(s) },
	}
	// trait accepts the form of traits. Ironic knows which standard traits there are.
	trait = text{
		summary: "Not a trait", must: "must be a trait of your own, CUSTOM_ and capital letters, digits or underscores, or a standard " +
			"one, such as HW_CPU_X86_AVX2",
		ok: func(s string) bool { return len(s) <= 255 && traitPattern.MatchString(s) },
		why: func(s string) string {
			if own := "CUSTOM_" + strings.TrimPrefix(notInTraits.ReplaceAllString(strings.ToUpper(s), "_"), "CUSTOM_"); len(own) <= 255 &&
				traitPattern.MatchString(own) {
				return fmt.Sprintf("%q is neither a trait of your own, which begins with CUSTOM_, nor a standard one. Write %q.", s, own)
			}
			return ""
		},
	}
	// UUID accepts the spelling that Ironic uses, and suggests it for any other.
	UUID = text{
		summary: "Not a UUID", must: "must be a UUID", ok: func(s string) bool {
			return UUIDPattern.MatchString(s) && s == strings.ToLower(s)
		},
		why: func(s string) string { return lowered(s, UUIDPattern.MatchString) },
	}
	// ConductorGroup accepts texts in lower case (reference/ironic.md#texts-that-ironic-changes).
	ConductorGroup = text{
		summary: "Not in lower case", must: "must be in lower case", ok: func(s string) bool { return s == strings.ToLower(s) },
		why: func(s string) string { return lowered(s, func(string) bool { return true }) },
	}
	// switchID accepts the switch_id of a port in the spelling that Ironic uses (reference/ironic.md#texts-that-ironic-changes).
	switchID = text{
		summary: "Not the ID of a switch", must: "must be the MAC address of the switch, such as 52:54:00:aa:bb:01, or an OpenFlow " +
			"datapath ID of 16 hexadecimal digits, in lower case", ok: isSwitchID,
		why: func(s string) string { return lowered(strings.ReplaceAll(s, "-", ":"), isSwitchID) },
	}
	// notUUID refuses names that Ironic would treat as a UUID.
	notUUID = text{
		summary: "Not a name", must: "must not be a UUID", ok: func(s string) bool { return !UUIDPattern.MatchString(s) },
		why: func(s string) string {
			return fmt.Sprintf("%q must not be a UUID: Ironic accepts none as a name. To manage an object without a name, import it by "+
				"its UUID, and leave name out or write name = null.", s)
		},
	}
	ImageURL = text{
		summary: "Not the URL of an image", must: "must be the URL of an image that Ironic can fetch",
	}.of("http", "https", "file", "oci", "glance")
	// ImageReference accepts the UUID of an image in Glance, too.
	ImageReference = text{
		summary: "Not the URL of an image", must: "must be the URL of an image, or its UUID in Glance",
		ok: func(s string) bool { return ironic.IsUUID(s) || ImageURL.ok(s) }, why: ImageURL.why,
	}
	// Unpacked warns of compressed images: neither Ironic nor its agent unpacks them (reference/ironic.md#format-of-an-image).
	Unpacked = text{
		summary: "Image is compressed", must: "names a compressed file. Ironic and its agent unpack none: they write or boot it as it " +
			"is. Unpack it on the server; qcow2 images are small without it", hides: true, warns: true,
		ok: func(s string) bool { return !packedPattern.MatchString(s) },
	}
	// DriveURL accepts what the agent on a machine can fetch.
	DriveURL = text{summary: "Not the URL of a config drive", must: "must be a URL of the web"}.of("http", "https")
	// MediaURL accepts what a BMC can fetch.
	MediaURL = text{
		summary: "Not the URL of an image", must: "must be the URL of an image that a BMC can fetch",
	}.of("http", "https", "nfs", "cifs")
	// FirmwareURL accepts any URL: which schemes work depends on the BMC.
	FirmwareURL = text{summary: "Not a URL", must: "must be a URL with a scheme"}.of()
	Checksum    = text{
		summary: "Not a checksum", must: "must be an MD5, SHA-256 or SHA-512 checksum in hexadecimal (32, 64 or 128 digits), or the URL " +
			"of a file of checksums",
		ok: func(s string) bool {
			return checksumPattern.MatchString(s) || ironic.URLFault(s, "http", "https", "file") == ""
		}, hides: true,
	}
	Hostname = text{
		summary: "Not a host name", must: "must be a host name: labels of at most 63 letters, digits and hyphens, separated by dots",
		ok: func(s string) bool { return len(s) <= 253 && hostnamePattern.MatchString(s) },
	}
	NotBlank = text{
		summary: "Blank text", must: "must not be blank",
		ok: func(s string) bool { return strings.TrimSpace(s) != "" },
	}
	NotNegativeDuration = text{
		summary: "Not a duration", must: "must be a duration such as \"90s\" or \"5m\"",
		ok: func(s string) bool { d, err := time.ParseDuration(s); return err == nil && d >= 0 },
	}
	Age = text{
		summary: "Not an age", must: "must be a time such as \"90d\" or \"12h\"",
		ok: func(s string) bool { _, ok := clock.ParseAge(s); return ok },
	}
	// BurnInParameters accepts keys of driver_info that no step but those of a burn-in reads.
	BurnInParameters = text{
		summary: "Not parameters of a burn-in", must: "must be a JSON object whose keys begin with agent_burnin_, such as " +
			"jsonencode({ agent_burnin_cpu_timeout = 3600 })",
		ok: func(s string) bool {
			var keys map[string]any
			return NotJSON(s) != "" || document.Decode([]byte(s), &keys) == nil && len(keys) > 0 &&
				!slices.ContainsFunc(slices.Collect(maps.Keys(keys)), func(key string) bool { return !notes.IsBurnInKey(key) })
		},
	}
	RegularExpression = text{
		summary: "Not a regular expression", must: "must be a regular expression",
		ok: func(s string) bool { _, err := regexp.Compile(s); return err == nil },
		why: func(s string) string {
			_, err := regexp.Compile(s)
			return fmt.Sprintf("%q: %v.", s, err)
		},
	}
	// JSONObjectText accepts a JSON object in text. The type of the attribute reports a text that is not JSON.
	JSONObjectText = text{
		summary: "Not a JSON object", must: "must be a JSON object, such as jsonencode({ slot = 1 })",
		ok: func(s string) bool { return NotJSON(s) != "" || strings.HasPrefix(strings.TrimSpace(s), "{") }, hides: true,
	}
	WholeNumber = text{
		summary: "Not a number", must: "must be a whole number of at least 1",
		ok: func(s string) bool { n, err := strconv.ParseInt(s, 10, 64); return err == nil && n >= 1 },
	}
	cidr = text{
		summary: "Not a network", must: "must be a network such as 10.12.0.0/24",
		ok: func(s string) bool { _, err := netip.ParsePrefix(s); return err == nil },
	}
	Timestamp = text{
		summary: "Not a time", must: "must be a time such as 2026-05-01T12:00:00Z (RFC 3339)",
		ok: func(s string) bool { _, err := time.Parse(time.RFC3339, s); return err == nil },
	}
)

// of accepts URLs with some schemes; without any, all. Its message shows no URL, which may have secrets.
func (r text) of(schemes ...string) text {
	r.ok = func(s string) bool { return ironic.URLFault(s, schemes...) == "" }
	r.why = func(s string) string { return "The value " + ironic.URLFault(s, schemes...) + "." }
	return r
}

// JSONObjectValue accepts objects whose keys Ironic can change later.
type JSONObjectValue struct{}

// Description returns the rule.
func (JSONObjectValue) Description(context.Context) string {
	return "must be an object, such as { team = \"web\" }"
}

// MarkdownDescription returns the rule.
func (v JSONObjectValue) MarkdownDescription(ctx context.Context) string { return v.Description(ctx) }

// ValidateDynamic adds an error for a known value that is not an object.
func (v JSONObjectValue) ValidateDynamic(ctx context.Context, req validator.DynamicRequest, resp *validator.DynamicResponse) {
	if !IsSet(req.ConfigValue) || req.ConfigValue.IsUnderlyingValueUnknown() || req.ConfigValue.IsUnderlyingValueNull() {
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
		if notes.OwnKey(key) {
			resp.Diagnostics.AddAttributeError(req.Path, "Reserved key",
				fmt.Sprintf("%q is reserved for the provider. Use another key.", key))
		}
	}
}

// Patterns of the MAC addresses, names, traits and UUIDs that Ironic accepts.
var (
	macPattern = regexp.MustCompile(`^[0-9a-f]{2}(:[0-9a-f]{2}){5}$`)
	// infinibandPattern is the address of an IPoIB device. Ironic's agent makes 6 bytes and a client ID of its last 8
	// (ironic_python_agent/hardware_managers/mlnx.py).
	infinibandPattern = regexp.MustCompile(`^[0-9a-f]{2}(:[0-9a-f]{2}){19}$`)

	namePattern = regexp.MustCompile(`^[A-Za-z0-9._~-]{1,255}$`)
	// traitPattern has the prefix of custom traits, and then the namespaces of os-traits.
	traitPattern = regexp.MustCompile(`^(CUSTOM|COMPUTE|HW|MISC|OWNER|STORAGE)_[A-Z0-9_]+$`)
	notInTraits  = regexp.MustCompile(`[^A-Z0-9_]+`)
	// datapathPattern is the OpenFlow ID of a switch.
	datapathPattern = regexp.MustCompile(`^[0-9a-f]{16}$`)
	UUIDPattern     = regexp.MustCompile(`^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`)
)

// isCard reports whether a text is the MAC address of a network card, in Ironic's spelling. Zeros and addresses of groups are none.
func isCard(s string) bool {
	return macPattern.MatchString(s) && s != "00:00:00:00:00:00" && strings.Contains("02468ace", s[1:2])
}

func whyNoCard(s string) string {
	other := ironic.MAC(strings.TrimSpace(s))
	switch {
	case infinibandPattern.MatchString(other):
		guid := other[len(other)-len("7c:fe:90:03:00:29:26:52"):]
		return fmt.Sprintf("%q is the InfiniBand address of a card, with 20 bytes. Write %q, and extra_json = "+
			"jsonencode({ client-id = %q }) for this port.", s, guid[:9]+guid[15:], "ff:00:00:00:00:00:02:00:00:02:c9:00:"+guid)
	case isCard(other):
		return fmt.Sprintf("Write %q as %q, as Ironic does.", s, other)
	case macPattern.MatchString(other):
		return fmt.Sprintf("%q is no address of a network card: it stands for none, or for several.", s)
	}
	return ""
}

// lowered suggests the spelling of Ironic if only that makes a text valid; "" if not.
func lowered(s string, ok func(string) bool) string {
	if lower := strings.ToLower(s); ok(lower) {
		return fmt.Sprintf("Write %q, as Ironic does.", lower)
	}
	return ""
}

func isSwitchID(s string) bool { return macPattern.MatchString(s) || datapathPattern.MatchString(s) }

// LocalLink validates the local_link_connection of a port.
type LocalLink struct{ text }

// linkKeys are the keys that Ironic accepts in a local_link_connection.
var linkKeys = []string{"hostname", "network_type", "port_id", "switch_id", "switch_info"}

// ValidateMap adds an error for keys that Ironic refuses or misses, and for a switch_id that it refuses or spells otherwise.
func (LocalLink) ValidateMap(ctx context.Context, req validator.MapRequest, resp *validator.MapResponse) {
	link := req.ConfigValue.Elements()
	for _, key := range slices.Sorted(maps.Keys(link)) {
		if !slices.Contains(linkKeys, key) {
			resp.Diagnostics.AddAttributeError(req.Path, "Not a link to a switch", fmt.Sprintf("Ironic knows no key %q here, only %s.", key,
				strings.Join(linkKeys, ", ")))
		}
	}
	if len(link) > 0 && link["network_type"] == nil && (link["port_id"] == nil || link["switch_id"] == nil && link["hostname"] == nil) {
		resp.Diagnostics.AddAttributeError(req.Path, "Not a link to a switch", "Ironic demands port_id and switch_id, or port_id and "+
			"hostname for a smart NIC.")
	}
	value, ok := link["switch_id"].(types.String)
	if !ok {
		return
	}
	var of validator.StringResponse
	switchID.ValidateString(ctx, validator.StringRequest{Path: req.Path.AtMapKey("switch_id"), ConfigValue: value}, &of)
	resp.Diagnostics.Append(of.Diagnostics...)
}

// NameValidators accept the names that Ironic accepts for nodes and allocations.
func NameValidators() []validator.String {
	return []validator.String{
		stringvalidator.RegexMatches(namePattern, "must have 1 to 255 letters, digits and the characters . _ ~ -"),
		stringvalidator.NoneOf("maintenance", "management", "states", "vendor_passthru", "detail", "validate", ".", ".."),
		notUUID,
	}
}

// Trait accepts a trait.
func Trait() validator.String { return trait }

// IsTrait reports whether a text has the form of a trait.
func IsTrait(s string) bool { return trait.ok(s) }

// maxTraits is how many traits a node can have.
const maxTraits = 50

// TraitValidators accept sets of traits.
func TraitValidators() []validator.Set {
	return []validator.Set{setvalidator.SizeAtMost(maxTraits), setvalidator.ValueStringsAre(trait)}
}

// KeyValidators accept maps with keys that a JSON patch can address.
func KeyValidators() []validator.Map { return []validator.Map{mapvalidator.KeysAre(patchableKey)} }

// Positive returns a number for state. Zero means that the value was not found, and becomes null.
func Positive(n int64) types.Int64 {
	if n <= 0 {
		return types.Int64Null()
	}
	return types.Int64Value(n)
}
