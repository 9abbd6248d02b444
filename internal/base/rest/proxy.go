package rest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
)

// ProxyOf returns the proxy through which a transport sends a request, without its credentials; "" if there is none.
func ProxyOf(transport http.RoundTripper, r *http.Request) string {
	if t, ok := transport.(*http.Transport); ok && t.Proxy != nil {
		if proxy, err := t.Proxy(r); err == nil && proxy != nil {
			return Origin(proxy.String())
		}
	}
	return ""
}

// AdviseProxy says what to do if a proxy does not let requests to a host through.
func AdviseProxy(proxy, host string) string {
	return fmt.Sprintf("The environment names the proxy %s (HTTP_PROXY or HTTPS_PROXY). If %s is reached without it, add %s to NO_PROXY. "+
		"Otherwise let the proxy pass the requests, and write the credentials that it may want into that variable.", proxy, host, host)
}

// ProxyError says that a request to Host got no answer through a proxy.
type ProxyError struct {
	Proxy, Host string
	Err         error
}

// Error names the proxy, without its credentials.
func (e *ProxyError) Error() string { return fmt.Sprintf("through the proxy %s: %v", e.Proxy, e.Err) }

// Unwrap returns the cause.
func (e *ProxyError) Unwrap() error { return e.Err }

// Timeout reports whether the cause is a time-out.
func (e *ProxyError) Timeout() bool {
	var cause net.Error
	return errors.As(e.Err, &cause) && cause.Timeout()
}

// proxied names the proxy in the error of a request that got no answer.
func proxied(next http.RoundTripper, r *http.Request, err error) error {
	if proxy := ProxyOf(next, r); proxy != "" && err != nil && !errors.Is(r.Context().Err(), context.Canceled) {
		return &ProxyError{Proxy: proxy, Host: r.URL.Hostname(), Err: err}
	}
	return err
}
