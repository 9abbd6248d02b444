package fakeironic

import (
	"net/http"
	"strings"
)

// base64Alphabet are the characters that a config drive in a text may have.
const base64Alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=\n\r"

// checkConfigDrive checks the config drive of a provision request.
func checkConfigDrive(c *call, request provisionRequest) error {
	parts, isObject := request.configdrive.(map[string]any)
	if len(parts) == 0 && text(request.configdrive) == "" {
		return nil
	}
	target := request.target.canonical()
	rebuilds := c.minor >= 35 && target == verbRebuild
	if target != verbActive && !rebuilds {
		allowed := "active"
		if c.minor >= 35 {
			allowed = "active, rebuild"
		}
		return fault(http.StatusBadRequest, "Adding a config drive is only supported when setting provision state to %s", allowed)
	}
	if !isObject {
		drive := text(request.configdrive)
		if !strings.Contains(drive, "://") && strings.Trim(drive, base64Alphabet) != "" {
			return fault(http.StatusBadRequest, "Invalid configdrive format: it is neither a JSON, nor a URL, nor a base64 string")
		}
		return nil
	}
	return checkDriveParts(c, parts)
}

// checkDriveParts checks a config drive that Ironic is to build.
func checkDriveParts(c *call, parts map[string]any) error {
	for _, key := range sortedKeys(parts) {
		var valid []string
		switch key {
		case "meta_data", "network_data", "vendor_data":
			valid = []string{"object"}
		case "user_data":
			valid = []string{"object", "array", "string", "null"}
		default:
			return fault(http.StatusBadRequest, "Invalid configdrive format: Additional properties are not allowed (%s was unexpected)\n\n"+
				"Failed validating 'additionalProperties' in schema[0]:\n    {}", pyRepr(key))
		}
		if !contains(valid, jsonType(parts[key])) {
			quoted := "'" + strings.Join(valid, "', '") + "'"
			return fault(http.StatusBadRequest, "Invalid configdrive format: %s is not of type %s\n\nFailed validating 'type' in schema[0]:\n    {}",
				pyRepr(parts[key]), quoted)
		}
	}
	if c.minor < 56 {
		return fault(http.StatusBadRequest, "Providing a JSON object for configdrive is only supported starting with API version 1.56")
	}
	if _, given := parts["vendor_data"]; given && c.minor < 59 {
		return fault(http.StatusBadRequest, "Providing vendor_data in configdrive is only supported starting with API version 1.59")
	}
	return nil
}

// blank says that the text has nothing but white space.
func blank(text string) bool { return strings.TrimSpace(text) == "" }
