package framework

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/schema/validator"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
)

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
	if faults := networkFaults(req); faults != "" {
		resp.Diagnostics.AddAttributeError(req.Path, "Not network data", fmt.Sprintf("Ironic would refuse %s, because it does not follow OpenStack's schema of network data:\n\n%s", req.Path, faults))
	}
}

// ConfigDriveNetworkData warns of JSON documents that do not follow OpenStack's schema of network data. Ironic writes any object into a
// config drive, and operating systems read more, or less, than the schema allows.
type ConfigDriveNetworkData struct{ NetworkData }

// ValidateString adds one warning that lists all faults.
func (ConfigDriveNetworkData) ValidateString(_ context.Context, req validator.StringRequest, resp *validator.StringResponse) {
	if faults := networkFaults(req); faults != "" {
		resp.Diagnostics.AddAttributeWarning(req.Path, "Network data may be ignored", fmt.Sprintf("%s does not follow OpenStack's schema of network data. Ironic writes it into the config drive as it is, "+
			"and the operating system may ignore it:\n\n%s", req.Path, faults))
	}
}

// networkFaults returns what breaks the schema, one line each.
func networkFaults(req validator.StringRequest) string {
	var document any
	if !IsSet(req.ConfigValue) || json.Unmarshal([]byte(req.ConfigValue.ValueString()), &document) != nil {
		return ""
	}
	var lines []string
	for _, fault := range ironic.CheckNetworkData(document) {
		if fault.Path == "" {
			fault.Path = "The document"
		}
		lines = append(lines, "  "+fault.Path+": "+fault.Must)
	}
	return strings.Join(lines, "\n")
}
