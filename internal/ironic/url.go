package ironic

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/rest"
)

// URLFault says what is wrong with a URL, and what to write; "" if nothing is. Without schemes, any will do. Its texts continue a sentence
// that begins with "It", and show nothing of the URL, which may have secrets.
func URLFault(text string, schemes ...string) string {
	scheme, after, is := strings.Cut(text, "://")
	switch {
	case rest.Padded(text):
		return "must not contain white space or control characters: use trimspace() for a text from a file"
	case strings.ContainsFunc(text, func(r rune) bool { return r == ' ' || !unicode.IsPrint(r) }):
		return "must not contain white space or control characters: write a space as %20"
	case len(schemes) == 0 && (!is || scheme == "" || after == ""):
		return "must be a URL with a scheme, such as https://"
	case len(schemes) > 0 && (!slices.Contains(schemes, scheme) || after == ""):
		return mustBegin(schemes)
	case scheme == "glance":
		if id := after[strings.LastIndexByte(after, '/')+1:]; !IsUUID(id) {
			return "must be glance:// and the UUID of the image, not its name"
		}
		return ""
	case scheme == "file":
		if !strings.HasPrefix(after, "/") || strings.HasSuffix(after, "/") {
			return "must name a file by its absolute path, after three slashes, such as file:///images/debian.qcow2"
		}
		return ""
	}
	authority, _, _ := strings.Cut(after, "/")
	if end := strings.IndexAny(authority, "?#"); end >= 0 {
		authority = authority[:end]
	}
	return hostFault(scheme, authority[strings.LastIndexByte(authority, '@')+1:])
}

func hostFault(scheme, host string) string {
	name, port, hasPort := strings.Cut(host, ":")
	inside, after, closed := strings.Cut(strings.TrimPrefix(host, "["), "]")
	if strings.HasPrefix(host, "[") {
		name = inside
		port, hasPort = strings.CutPrefix(after, ":")
		if ip, err := netip.ParseAddr(inside); err != nil || !ip.Is6() || !closed || after != "" && !hasPort {
			return "must have one IPv6 address in its brackets, such as " + scheme + "://[2001:db8::1]:8080/"
		}
	} else if strings.Count(host, ":") > 1 {
		return "must have its IPv6 address in brackets, such as " + scheme + "://[2001:db8::1]/"
	}
	if name == "" {
		return "must have a host after " + scheme + "://"
	}
	if n, err := strconv.ParseUint(port, 10, 16); hasPort && port != "" && (err != nil || n == 0) {
		return "must have a number from 1 to 65535 as its port"
	}
	return ""
}

func mustBegin(schemes []string) string {
	last := len(schemes) - 1
	if last == 0 {
		return "must begin with " + schemes[0] + "://"
	}
	return fmt.Sprintf("must begin with %s:// or %s://", strings.Join(schemes[:last], "://, "), schemes[last])
}
