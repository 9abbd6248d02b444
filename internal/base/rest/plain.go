package rest

import "net/url"

// PlainURL returns an address without credentials, query and fragment, which may have secrets, for people.
func PlainURL(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return "an address that cannot be read"
	}
	return (&url.URL{Scheme: u.Scheme, Opaque: u.Opaque, Host: u.Host, Path: u.Path}).String()
}
