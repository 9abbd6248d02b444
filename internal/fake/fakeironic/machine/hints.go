package machine

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic/api"
)

// hintNames are the hints of ironic-lib in its order.
var hintNames = []string{
	"size", "model", "wwn", "serial", "vendor", "wwn_with_extension", "wwn_vendor_extension", "name", "rotational", "hctl", "by_path",
}

// hintOperators are those of oslo.utils in the order in which it tries them, but for the names in brackets: <or> and <all-in> come first.
var hintOperators = []string{"<or>", "<all-in>", "==", "=", "!=", "<in>", ">=", "<=", ">", "<", "s==", "s!=", "s<=", "s<", "s>=", "s>"}

var pythonInt = regexp.MustCompile(`^[+-]?[0-9]+(_[0-9]+)*$`)

// HintFault returns why ironic-lib's parse_root_device_hints refuses hints, in its words; "" if it accepts them.
func HintFault(hints map[string]any) string {
	var unknown []string
	for _, name := range api.SortedKeys(hints) {
		if !slices.Contains(hintNames, name) {
			unknown = append(unknown, name)
		}
	}
	if len(unknown) > 0 {
		return fmt.Sprintf("The hints \"%s\" are invalid. Valid hints are: \"%s\"", strings.Join(unknown, ", "),
			strings.Join(hintNames, ", "))
	}
	for _, name := range api.SortedKeys(hints) {
		if fault := oneHintFault(name, hints[name]); fault != "" {
			return fault
		}
	}
	return ""
}

func oneHintFault(name string, expression any) string {
	written := api.PyText(expression)
	text := strings.ToLower(strings.TrimSpace(written))
	_, isText := expression.(string)
	if name == "rotational" {
		if slices.Contains([]string{"1", "t", "true", "on", "y", "yes", "0", "f", "false", "off", "n", "no"}, text) {
			return ""
		}
		return fmt.Sprintf("Root device hint \"%s\" is not a Boolean value. Current value: %s", name, written)
	}
	if name != "size" && !isText {
		return fmt.Sprintf("Root device hint \"%s\" is not a string value. Hint expression: %s", name, written)
	}
	if text == "" {
		return fmt.Sprintf("Root device hint \"%s\" expression is empty", name)
	}
	values := []string{text}
	if op := operatorOf(text); op != "" {
		after := strings.TrimSpace(strings.TrimPrefix(text, op))
		if after == "" || operatorOf(after) != "" {
			return "Expected {{{'<or>' ~{{'==' | '=' | '!=' | ..., found end of text"
		}
		values = strings.Split(text, op)
	}
	for _, value := range values {
		if value = strings.TrimSpace(value); name != "size" || value == "" {
			continue
		}
		n, _ := strconv.ParseInt(strings.ReplaceAll(value, "_", ""), 10, 64)
		switch {
		case !pythonInt.MatchString(value):
			return fmt.Sprintf("Root device hint \"%s\" is not an integer value. Current value: %s", name, written)
		case n <= 0:
			return fmt.Sprintf("Root device hint \"%s\" should be a positive integer. Current value: %s", name, written)
		}
	}
	return ""
}

func operatorOf(text string) string {
	for _, op := range hintOperators {
		if strings.HasPrefix(text, op) {
			return op
		}
	}
	return ""
}
