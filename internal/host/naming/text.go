package naming

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// trimmed removes white space, control characters and punctuation at the ends of a text.
func trimmed(raw string) string {
	return strings.TrimFunc(raw, func(r rune) bool {
		return unicode.IsSpace(r) || unicode.IsControl(r) || strings.ContainsRune("-._~", r)
	})
}

// saysNothing reports whether a trimmed text is a placeholder of firmware or operating systems.
func saysNothing(value string) bool {
	value = strings.ToLower(value)
	if value == "" || strings.HasPrefix(value, "localhost") {
		return true
	}
	first, size := utf8.DecodeRuneInString(value)
	if len(value) > size && strings.Trim(value, string(first)) == "" { // 0000000, xxxx
		return true
	}
	return slices.Contains([]string{
		"none", "(none)", "null", "n/a", "unknown", "not specified", "not available", "not applicable", "to be filled by o.e.m",
		"0", "default string", "system serial number", "chassis serial number", "0123456789", "1234567890", "123456789",
	}, value)
}

// lower folds ASCII letter case, as Ironic's databases may do with names.
func lower(text string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'A' && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}, text)
}

// quote makes an untrusted text safe to show: quoted, without control characters, shortened.
func quote(text string) string {
	const most = 60
	if len(text) <= most {
		return fmt.Sprintf("%q", text)
	}
	return fmt.Sprintf("%q", strings.ToValidUTF8(text[:most], "")+"…")
}
