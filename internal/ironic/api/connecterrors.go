package api

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"syscall"
)

// SettingsError says that the settings of the connection are wrong or incomplete. No request was sent.
type SettingsError struct{ Err error }

// Error returns the cause, which names the setting.
func (e *SettingsError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *SettingsError) Unwrap() error { return e.Err }

// Elsewhere tells IsNotFound that the cause is not the requested object.
func (e *SettingsError) Elsewhere() {}

// AuthError says that Keystone gave no token.
type AuthError struct {
	Keystone string // its URL
	Place    string // where the credentials are, such as "the OS_* variables"
	Setting  string // the setting with the URL, such as OS_AUTH_URL
	Token    bool   // the user has given a token
	Err      error
}

// Error names Keystone, once.
func (e *AuthError) Error() string {
	cause := bare(e.Err)
	var status *StatusError
	switch {
	case errors.As(e.Err, &status) && status.Status == http.StatusUnauthorized:
		return fmt.Sprintf("Keystone at %s refuses the credentials of %s: %v", e.Keystone, e.Place, cause)
	case errors.Is(cause, syscall.ECONNREFUSED):
		return fmt.Sprintf("Keystone at %s does not answer: connection refused", e.Keystone)
	case IsConnectionLoss(cause):
		return fmt.Sprintf("Keystone at %s does not answer: %v", e.Keystone, cause)
	}
	return fmt.Sprintf("Keystone at %s: %v", e.Keystone, cause)
}

// Unwrap returns the cause.
func (e *AuthError) Unwrap() error { return e.Err }

// Elsewhere tells IsNotFound that the cause is Keystone, not the requested object.
func (e *AuthError) Elsewhere() {}

// Place is a part of the service catalog.
type Place struct{ Region, Interface string }

// CatalogError says that Keystone's service catalog has no URL of Ironic where it is looked for, or several.
type CatalogError struct {
	Keystone                string   // its URL
	Type, Region, Interface string   // what is looked for; an empty Region: in all
	Has                     []Place  // where the catalog has such a service
	Types                   []string // of all services of the catalog
	Several                 bool     // it has more than one URL there
}

// Error says what is looked for, and what there is.
func (e *CatalogError) Error() string {
	if len(e.Types) == 0 {
		return fmt.Sprintf("Keystone at %s has given a token without a service catalog: the token is for no project and not for the system", e.Keystone)
	}
	wanted := fmt.Sprintf("the service catalog of Keystone at %s has no service of type %s", e.Keystone, e.Type)
	if len(e.Has) == 0 {
		return fmt.Sprintf("%s. It has: %s", wanted, list(e.Types))
	}
	if e.Region != "" {
		wanted += " in region " + e.Region
	}
	var has []string
	for _, place := range e.Has {
		has = append(has, fmt.Sprintf("%s in region %s", place.Interface, place.Region))
	}
	if e.Several {
		return fmt.Sprintf("the service catalog of Keystone at %s has several services of type %s with interface %s. It has: %s", e.Keystone, e.Type, e.Interface, list(has))
	}
	return fmt.Sprintf("%s with interface %s. It has: %s", wanted, e.Interface, list(has))
}

// Elsewhere tells IsNotFound that the cause is the catalog, not the requested object.
func (e *CatalogError) Elsewhere() {}

// list joins texts in order, each once.
func list(texts []string) string {
	return strings.Join(slices.Compact(slices.Sorted(slices.Values(texts))), ", ")
}

// EndpointError says that no server answers at Ironic's endpoint, or one that is not Ironic.
type EndpointError struct {
	Endpoint string
	Found    string // where in Keystone's catalog the URL is, such as "region north, interface public"; empty: it is not from there
	Err      error
}

// Error names the endpoint, once.
func (e *EndpointError) Error() string {
	cause := bare(e.Err)
	at := "Ironic at " + e.Endpoint
	if e.Found != "" {
		at += fmt.Sprintf(" (%s of the service catalog)", e.Found)
	}
	switch {
	case errors.Is(cause, syscall.ECONNREFUSED):
		return at + " does not answer: connection refused"
	case IsConnectionLoss(cause):
		return fmt.Sprintf("%s does not answer: %v", at, cause)
	}
	return fmt.Sprintf("%s: %v", at, cause)
}

// Unwrap returns the cause.
func (e *EndpointError) Unwrap() error { return e.Err }

// Elsewhere tells IsNotFound that the cause is the endpoint, not the requested object.
func (e *EndpointError) Elsewhere() {}

// bare returns an error without the request that it is about.
func bare(err error) error {
	var request *url.Error
	if errors.As(err, &request) {
		return request.Err
	}
	return err
}

// IsUntrusted reports whether the certificate of a server is not trusted.
func IsUntrusted(err error) bool {
	var certificate *tls.CertificateVerificationError
	return errors.As(err, &certificate)
}
