package api

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// Kind lists the JSON types that a member may have.
type Kind struct {
	Types     []string // in the order of the error message
	MaxLength int
}

// The kinds that many members have.
var (
	StringKind = Kind{Types: []string{"string"}}
	TextKind   = Kind{Types: []string{"string", "null"}}
	ObjectKind = Kind{Types: []string{"object", "null"}}
	BoolKind   = Kind{Types: []string{"string", "boolean", "null"}}
	ListKind   = Kind{Types: []string{"array", "null"}}
	ClassKind  = Kind{Types: []string{"string", "null"}, MaxLength: 80}
)

// Schema checks a body and refuses members that it does not list.
type Schema struct {
	Name     string // in the error message: "Schema error for <name>: "
	Members  map[string]Kind
	Required []string
}

// Check returns the first error in the body.
func (s Schema) Check(body map[string]any) error {
	for _, key := range SortedKeys(body) {
		k, known := s.Members[key]
		if !known {
			return s.Fault("Additional properties are not allowed (%s was unexpected)", PyRepr(key))
		}
		if err := s.CheckKind(k, body[key]); err != nil {
			return err
		}
	}
	for _, key := range s.Required {
		if _, given := body[key]; !given {
			return s.Fault("%s is a required property", PyRepr(key))
		}
	}
	return nil
}

// CheckKind refuses a value of another kind.
func (s Schema) CheckKind(k Kind, value any) error {
	if !slices.Contains(k.Types, JSONType(value)) {
		quoted := make([]string, len(k.Types))
		for i, t := range k.Types {
			quoted[i] = PyRepr(t)
		}
		return s.Fault("%s is not of type %s", PyRepr(value), strings.Join(quoted, ", "))
	}
	if k.MaxLength > 0 && utf8.RuneCountInString(Text(value)) > k.MaxLength {
		return s.Fault("%s is too long", PyRepr(value))
	}
	return nil
}

// CheckTexts refuses a list with a member that is not a string; name is the name of the body's schema.
func CheckTexts(name string, value any) error {
	list, _ := value.([]any)
	for _, item := range list {
		if err := (Schema{Name: name}).CheckKind(StringKind, item); err != nil {
			return err
		}
	}
	return nil
}

// Fault returns the error of a body that the schema refuses.
func (s Schema) Fault(format string, args ...any) error {
	subject := ""
	if s.Name != "" {
		subject = " for " + s.Name
	}
	return Fault(http.StatusBadRequest, "Schema error%s: %s", subject, fmt.Sprintf(format, args...))
}

// JSONType returns the JSON type of a value.
func JSONType(value any) string {
	switch value.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case string:
		return "string"
	case float64, json.Number:
		return "number"
	case []any:
		return "array"
	case map[string]any:
		return "object"
	}
	return ""
}

var namePattern = regexp.MustCompile(`^[A-Za-z0-9._~-]{1,255}$`)

// ValidName reports whether a node or an allocation may have the name.
func ValidName(name string) bool { return namePattern.MatchString(name) }

// ReadMAC checks a MAC address and returns it in lower case.
func ReadMAC(value any) (string, error) {
	mac := strings.ToLower(Text(value))
	if !macPattern.MatchString(mac) {
		return "", Fault(http.StatusBadRequest, "Expected valid MAC address for address: %s", PyText(value))
	}
	return mac, nil
}

var macPattern = regexp.MustCompile(`^[0-9a-f]{2}(:[0-9a-f]{2}){5}$`)

// datapathPattern is the OpenFlow ID of a switch.
var datapathPattern = regexp.MustCompile(`^[0-9a-f]{16}$`)

// CheckLink checks local_link_connection and changes its switch_id to lower case.
func CheckLink(body map[string]any) error {
	link := Object(body["local_link_connection"])
	if len(link) == 0 {
		return nil
	}
	complaint := ""
	for _, key := range SortedKeys(link) {
		if !slices.Contains([]string{"port_id", "switch_id", "hostname", "switch_info", "network_type"}, key) {
			complaint = fmt.Sprintf("Additional properties are not allowed (%s was unexpected)", PyRepr(key))
		}
	}
	for _, key := range []string{"port_id", "switch_id"} {
		if _, given := link[key]; complaint == "" && !given && link["network_type"] != "unmanaged" && link["hostname"] == nil {
			complaint = PyRepr(key) + " is a required property"
		}
	}
	if complaint != "" {
		return Fault(http.StatusBadRequest, "Schema error for local_link_connection: %s is not valid under any of the given schemas. "+
			"Possible root cause: %s", PyRepr(link), complaint)
	}
	if id := strings.ToLower(Text(link["switch_id"])); id != "" {
		if !macPattern.MatchString(id) && !datapathPattern.MatchString(id) {
			return Fault(http.StatusBadRequest, "Expected a MAC address or OpenFlow datapath ID but received %s.", Text(link["switch_id"]))
		}
		link["switch_id"] = id
	}
	return nil
}

// traitPattern matches custom traits and some of the standard traits.
var traitPattern = regexp.MustCompile(
	`^(CUSTOM_[A-Z0-9_]+|HW_CPU_X86_(VMX|SVM|SGX|AVX2?|AVX512F)|HW_CPU_HYPERTHREADING|HW_NUMA_ROOT|HW_GPU_API_VULKAN|` +
		`STORAGE_DISK_(HDD|SSD)|COMPUTE_NODE|COMPUTE_MANAGED_PCI_DEVICE|MISC_SHARES_VIA_AGGREGATE|OWNER_NOVA)$`)

// CheckTrait refuses a text that is not a trait; schema names the body in the error.
func CheckTrait(schema, trait string) error {
	if traitPattern.MatchString(trait) && len(trait) <= 255 {
		return nil
	}
	if schema != "" {
		schema = " for " + schema
	}
	return Fault(http.StatusBadRequest, "Schema error%s: %s is not valid under any of the given schemas. Possible root cause: %s does "+
		"not match '^CUSTOM_[A-Z0-9_]+$'", schema, PyRepr(trait), PyRepr(trait))
}
