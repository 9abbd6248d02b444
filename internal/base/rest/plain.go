package rest

import (
	"net/url"
	"path"
	"regexp"
	"strings"
)

// What people may see of an address is decided here. Credentials, query and fragment may have secrets, and the path of a web server, too.

// unreadable stands for an address that is not a URL.
const unreadable = "an address that cannot be read"

// Origin returns scheme, host and port of a URL.
func Origin(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return unreadable
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host}).String()
}

// PlainURL returns what shows which file is meant: scheme, host and port, and the name at the end of the path if it has a suffix, such as
// that of an image. Other addresses, such as that of a container or of an image in Glance, keep their paths.
func PlainURL(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return unreadable
	}
	if u.Scheme != "http" && u.Scheme != "https" {
		return (&url.URL{Scheme: u.Scheme, Opaque: u.Opaque, Host: u.Host, Path: u.Path}).String()
	}
	shown, name := Origin(address), path.Base(u.EscapedPath())
	if !suffix.MatchString(name) {
		name = ""
	}
	if strings.Trim(u.EscapedPath(), "/") == name {
		return strings.TrimSuffix(shown+"/"+name, "/")
	}
	return shown + "/…/" + name
}

var suffix = regexp.MustCompile(`.\.[A-Za-z][A-Za-z0-9]{0,8}$`)

// ofAPI returns what people see of a URL of an API, whose path is in its documentation.
func ofAPI(u *url.URL) string {
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}
