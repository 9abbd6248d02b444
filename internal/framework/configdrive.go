package framework

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/hashicorp/terraform-plugin-framework/schema/validator"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/document"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/networkdata"
)

// MaxConfigDrive is the largest size of a config drive in bytes, both as sent and unpacked (reference/ironic.md#config-drives).
const MaxConfigDrive = 64 << 20

// ConfigDriveContent accepts a ready-made config drive: the base64 of a gzip stream. Ironic itself would find most faults only when it
// writes the disk.
type ConfigDriveContent struct{}

// Description returns the rule.
func (ConfigDriveContent) Description(context.Context) string {
	return "must be the base64 of a gzip stream"
}

// MarkdownDescription returns the rule.
func (c ConfigDriveContent) MarkdownDescription(ctx context.Context) string {
	return c.Description(ctx)
}

// ValidateString adds an error that never contains the value.
func (ConfigDriveContent) ValidateString(_ context.Context, req validator.StringRequest, resp *validator.StringResponse) {
	if !IsSet(req.ConfigValue) {
		return
	}
	if fault := driveFault(req.ConfigValue.ValueString()); fault != "" {
		resp.Diagnostics.AddAttributeError(req.Path, "Not a config drive", fmt.Sprintf("%s %s", req.Path, fault))
	}
}

// driveFault says what is wrong with a config drive; "" if it is fine.
func driveFault(text string) string {
	const tooLarge = "has more than %d MiB, which Ironic refuses."
	if len(text) > MaxConfigDrive-1<<20 { // the request contains more than that
		return fmt.Sprintf(tooLarge, MaxConfigDrive>>20-1)
	}
	decoder := base64.NewDecoder(base64.StdEncoding, strings.NewReader(text))
	unpacked, err := gzip.NewReader(decoder)
	if err == nil {
		var size int64
		size, err = io.Copy(io.Discard, io.LimitReader(unpacked, MaxConfigDrive+1))
		if size > MaxConfigDrive {
			return "unpacked " + fmt.Sprintf(tooLarge, MaxConfigDrive>>20)
		}
	}
	if err != nil {
		return fmt.Sprintf("must be an image that is compressed with gzip and then encoded as base64 (%s). For a file that is not "+
			"compressed, such as an ISO, run gzip first, and use filebase64(\"config-drive.iso.gz\").", err)
	}
	return ""
}

// UserData warns of user data that cloud-init ignores on a config drive (reference/values.md#user-data). It shows nothing of it.
var UserData = text{
	summary: "User data may be ignored", must: "must begin as cloud-init expects it", warns: true,
	ok:  func(s string) bool { return userDataFault(s) == "" },
	why: func(s string) string { return userDataFault(s) + " Software that reads it otherwise is not affected." },
}

var (
	misspeltHeader = regexp.MustCompile(`(?i)^\s*#\s*cloud[ _-]*config\b`)
	cloudHeader    = regexp.MustCompile(`(?i)^\s*#cloud-config`)
)

func userDataFault(s string) string {
	decoded, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(s), ""))
	isText := !strings.ContainsFunc(string(decoded), func(r rune) bool {
		return r == utf8.RuneError || !unicode.IsPrint(r) && !unicode.IsSpace(r)
	})
	switch {
	case strings.HasPrefix(s, "\ufeff"):
		return "The user data begins with a byte order mark, and cloud-init does not recognise what follows. Save the file as UTF-8 " +
			"without it, or use trimprefix(..., \"\\ufeff\")."
	case misspeltHeader.MatchString(s) && !cloudHeader.MatchString(s):
		return "cloud-init recognises a cloud-config by its first line, which must be #cloud-config, without spaces."
	case err == nil && (bytes.HasPrefix(decoded, []byte("\x1f\x8b")) || len(decoded) >= 8 && isText):
		return "The user data is encoded as base64, and cloud-init decodes nothing on a config drive. Give it as it is, without " +
			"base64encode or base64gzip."
	}
	return ""
}

// NetworkData accepts JSON documents that follow OpenStack's schema of network data, as Ironic demands.
type NetworkData struct{}

// Description returns the rule.
func (NetworkData) Description(context.Context) string {
	return "must be network data in OpenStack's format: a JSON object with links, networks and services"
}

// MarkdownDescription returns the rule.
func (v NetworkData) MarkdownDescription(ctx context.Context) string { return v.Description(ctx) }

// ValidateString adds one error that lists all faults, with their paths inside the document. The type of the attribute reports text
// that is not JSON.
func (NetworkData) ValidateString(_ context.Context, req validator.StringRequest, resp *validator.StringResponse) {
	if faults := networkFaults(req, networkdata.Check); faults != "" {
		resp.Diagnostics.AddAttributeError(req.Path, "Not network data",
			fmt.Sprintf("Ironic would refuse %s, because it does not follow OpenStack's schema of network data:\n\n%s", req.Path, faults))
	}
}

// ConfigDriveNetworkData warns of JSON documents that do not follow OpenStack's schema of network data. Ironic writes any object into a
// config drive, and operating systems read more, or less, than the schema allows.
type ConfigDriveNetworkData struct{ NetworkData }

// ValidateString adds one warning that lists all faults. If there are none, it warns of what cloud-init does not accept.
func (ConfigDriveNetworkData) ValidateString(_ context.Context, req validator.StringRequest, resp *validator.StringResponse) {
	if faults := networkFaults(req, networkdata.CheckDrive); faults != "" {
		resp.Diagnostics.AddAttributeWarning(req.Path, "Network data may be ignored",
			fmt.Sprintf("%s does not follow OpenStack's schema of network data. Ironic writes it into the config drive as it is, and the "+
				"operating system may ignore it:\n\n%s", req.Path, faults))
		return
	}
	if faults := networkFaults(req, networkdata.CheckForCloudInit); faults != "" {
		resp.Diagnostics.AddAttributeWarning(req.Path, "Network data may be ignored",
			fmt.Sprintf("cloud-init ignores %s, or a network in it:\n\n%s\n\n"+
				"The function provider::metal::network_data writes network data without such faults.", req.Path, faults))
	}
}

func networkFaults(req validator.StringRequest, check func(document any) []networkdata.Fault) string {
	var content any
	if !IsSet(req.ConfigValue) || document.Decode([]byte(req.ConfigValue.ValueString()), &content) != nil {
		return ""
	}
	var lines []string
	for _, fault := range check(content) {
		fault.Path = cmp.Or(fault.Path, "The document")
		lines = append(lines, "  "+fault.Path+": "+fault.Must)
	}
	return strings.Join(lines, "\n")
}
