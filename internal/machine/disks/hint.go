package disks

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// otherNames are names that other tools give to hints, in lower case and without underscores.
var otherNames = map[string]string{"devicename": "name", "minsizegigabytes": keySize, "sizegb": keySize, "serialnumber": "serial"}

// operatorPattern is an operator of Ironic at the beginning of a hint, the longer ones first.
var operatorPattern = regexp.MustCompile(`^(<(?:or|all-in|in)>|s?[<>=!]=|s?[<>]|=)`)

var (
	integerPattern = regexp.MustCompile(`^\+?[0-9]+(_[0-9]+)*$`)
	unitPattern    = regexp.MustCompile(`^([<>=!]*)\s*([0-9]+)\s*g(i?b)?$`)
)

// truths are what Ironic reads as true or false.
var truths = []string{"1", "t", "true", "on", "y", "yes", "0", "f", "false", "off", "n", "no"}

// Fault says why Ironic's parser refuses a hint, and what to write; "" if it accepts it (reference/ironic.md#hints-of-disks).
func (h Hint) Fault() string {
	if len(h) == 0 {
		return "an entry has no hint"
	}
	for _, key := range slices.Sorted(maps.Keys(h)) {
		if fault := faultOf(key, h[key]); fault != "" {
			return fault
		}
	}
	return ""
}

func faultOf(key, text string) string {
	value := strings.ToLower(strings.TrimSpace(text))
	op := operatorPattern.FindString(value)
	after := strings.TrimSpace(value[len(op):])
	switch {
	case !slices.Contains(HintKeys, key):
		return unknownKey(key, text)
	case value == "":
		return key + " is empty"
	case key == "rotational" && !slices.Contains(truths, value):
		return fmt.Sprintf("rotational is %q, and must be \"true\" for hard disks or \"false\" for others", text)
	case key == "rotational":
		return ""
	case op != "" && (after == "" || operatorPattern.MatchString(after)):
		return fmt.Sprintf("%s is %q, an operator without a value", key, text)
	case key != keySize:
		return ""
	}
	parts := []string{value}
	if op != "" {
		parts = strings.Split(value, op)[1:]
	}
	for _, part := range parts {
		part = strings.TrimSpace(part)
		n, err := strconv.ParseInt(strings.ReplaceAll(part, "_", ""), 10, 64)
		if err != nil || n <= 0 || !integerPattern.MatchString(part) {
			return wrongSize(text, value)
		}
	}
	return ""
}

func unknownKey(key, text string) string {
	plain := strings.ToLower(strings.ReplaceAll(key, "_", ""))
	for _, known := range HintKeys {
		if strings.ReplaceAll(known, "_", "") == plain {
			return fmt.Sprintf("Ironic knows no hint %q: write %s", key, known)
		}
	}
	switch known := otherNames[plain]; {
	case plain == "minsizegigabytes":
		return fmt.Sprintf("Ironic knows no hint %q: write size = %q", key, ">= "+text)
	case known != "":
		return fmt.Sprintf("Ironic knows no hint %q: write %s", key, known)
	}
	return fmt.Sprintf("Ironic knows no hint %q", key)
}

func wrongSize(text, value string) string {
	fault := fmt.Sprintf("size is %q, and must be a whole number of GiB without a unit", text)
	if parts := unitPattern.FindStringSubmatch(value); parts != nil {
		return fmt.Sprintf("%s: write %q", fault, strings.TrimSpace(parts[1]+" "+parts[2]))
	}
	return fault + ", such as \">= 400\""
}
