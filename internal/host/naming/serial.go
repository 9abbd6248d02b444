package naming

import (
	"regexp"
	"slices"
	"strings"
)

// noSerials are what firmware reports in place of a serial number, in lower case and trimmed, by their source. Host names may have some of
// them: saysNothing has those that say nothing anywhere.
var noSerials = slices.Concat(
	// github.com/glpi-project/glpi, src/Blacklist.php: getDefaults
	[]string{
		"(null string)", "invalid", "sys-1234567890", "sys-9876543210", "sn-12345", "sn-1234567890", "mb-1234567890", "1", "12345",
		"123456", "1234567", "12345678", "123456789000", "12345678901234567", "eval", "iatpass", "tulip computers",
		"sn-123456fvgv3i0b8o5n6n7k", "unknow", "empty",
	},
	// github.com/systemd/systemd, hwdb.d/20-dmi-id.hwdb: what it calls rubbish
	[]string{"oem", "o.e.m"},
	// reports of machines; no public list is known to have them
	[]string{"0123456789abcdef", "undefined", "na", "sn", "sku", "tbd", "blank", "standard"},
)

// serialPattern has placeholders with a number, such as SerNum0, or without a value, such as 0x00000000 and Serial Number xxxxxx.
var serialPattern = regexp.MustCompile(`^(sernum\d*|0x0+|0xf+|serial number( x+)?)$`)

// isNoSerial reports whether a trimmed text of the inventory is no serial number.
func isNoSerial(value string) bool {
	low := strings.ToLower(value)
	return saysNothing(value) || slices.Contains(noSerials, low) || serialPattern.MatchString(low)
}
