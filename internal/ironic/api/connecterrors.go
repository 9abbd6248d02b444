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

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/fault"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/rest"
)

// Stage is a part of the way to Ironic's API.
type Stage string

// The stages of the way, in their order.
const (
	AtSettings Stage = "settings" // they are wrong or incomplete: no request was sent
	AtKeystone Stage = "keystone" // it gave no token
	AtCatalog  Stage = "catalog"  // it has no URL of Ironic where it is looked for, or several
	AtEndpoint Stage = "endpoint" // no server answers there, or one that is not Ironic
)

// ConnectError says at which stage the way to Ironic's API ends.
type ConnectError struct {
	Stage   Stage
	URL     string // of Keystone; at AtEndpoint that of Ironic
	Place   string // where the credentials are, such as "the OS_* variables"
	Setting string // the setting with the URL of Keystone, such as OS_AUTH_URL
	Token   bool   // the user has given a token
	Catalog        // what is looked for in the catalog, and what it has, at AtCatalog
	Found   string // where in the catalog the URL of Ironic is, such as "region north, interface public"; empty: it is not from there
	Err     error
}

// Catalog is what a service catalog has of what is looked for.
type Catalog struct {
	Type, Region, Interface string   // what is looked for; an empty Region: in all
	Has                     []Place  // where the catalog has such a service
	Types                   []string // of all services of the catalog
	Several                 bool     // it has more than one URL there
}

// Place is a part of the service catalog.
type Place struct{ Region, Interface string }

// StageOf returns the stage at which the way to Ironic's API has ended; "" if err does not say that.
func StageOf(err error) Stage {
	if connect, ok := errors.AsType[*ConnectError](err); ok {
		return connect.Stage
	}
	return ""
}

// Error names the server, once, or the setting.
func (e *ConnectError) Error() string {
	switch e.Stage {
	case AtKeystone:
		if status, ok := errors.AsType[*StatusError](e.Err); ok && status.Status == http.StatusUnauthorized {
			return fmt.Sprintf("Keystone at %s refuses the credentials of %s: %v", e.URL, e.Place, bare(e.Err))
		}
		return failedAt("Keystone at "+e.URL, e.Err)
	case AtCatalog:
		return e.lacks(e.URL)
	case AtEndpoint:
		at := "Ironic at " + e.URL
		if e.Found != "" {
			at += fmt.Sprintf(" (%s of the service catalog)", e.Found)
		}
		return failedAt(at, e.Err)
	case AtSettings:
	}
	return e.Err.Error()
}

// Unwrap returns the cause.
func (e *ConnectError) Unwrap() error { return e.Err }

// IsNotFound reports whether Ironic answered that the object does not exist. A 404 from another server, such as a proxy or a wrong
// endpoint, does not count, nor does one on the way to Ironic or one that is about another object.
func IsNotFound(err error) bool {
	if StageOf(err) != "" || fault.IsElsewhere(err) {
		return false
	}
	var status *StatusError
	return errors.As(err, &status) && status.Status == http.StatusNotFound && !status.Foreign
}

func failedAt(server string, err error) string {
	cause := bare(err)
	status, refused := errors.AsType[*StatusError](err)
	switch {
	case refused:
		return server + through(status.Proxy) + ": " + status.said()
	case isProxied(err), IsUnread(err):
	case errors.Is(cause, syscall.ECONNREFUSED):
		return server + " does not answer: connection refused"
	case IsConnectionLoss(cause):
		return fmt.Sprintf("%s does not answer: %v", server, cause)
	}
	return fmt.Sprintf("%s: %v", server, cause)
}

// lacks says what is looked for in the catalog of a Keystone, and what there is.
func (c *Catalog) lacks(keystone string) string {
	if len(c.Types) == 0 {
		return fmt.Sprintf("Keystone at %s has given a token without a service catalog: the token is for no project and not for the system",
			keystone)
	}
	wanted := fmt.Sprintf("the service catalog of Keystone at %s has no service of type %s", keystone, c.Type)
	if len(c.Has) == 0 {
		return fmt.Sprintf("%s. It has: %s", wanted, list(c.Types))
	}
	if c.Region != "" {
		wanted += " in region " + c.Region
	}
	var has []string
	for _, place := range c.Has {
		has = append(has, fmt.Sprintf("%s in region %s", place.Interface, place.Region))
	}
	if c.Several {
		return fmt.Sprintf("the service catalog of Keystone at %s has several services of type %s with interface %s. It has: %s",
			keystone, c.Type, c.Interface, list(has))
	}
	return fmt.Sprintf("%s with interface %s. It has: %s", wanted, c.Interface, list(has))
}

// list joins texts in order, each once.
func list(texts []string) string {
	return strings.Join(slices.Compact(slices.Sorted(slices.Values(texts))), ", ")
}

func bare(err error) error {
	if request, ok := errors.AsType[*url.Error](err); ok {
		return request.Err
	}
	return err
}

func isProxied(err error) bool {
	var proxied *rest.ProxyError
	return errors.As(err, &proxied)
}

// IsUntrusted reports whether the certificate of a server is not trusted.
func IsUntrusted(err error) bool {
	var certificate *tls.CertificateVerificationError
	return errors.As(err, &certificate)
}
