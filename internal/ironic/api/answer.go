package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/gophercloud/gophercloud/v2"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/document"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/fault"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/rest"
)

// Wrap turns gophercloud's error for a refused request into a StatusError without secrets, and its error for a token that could
// not be renewed into a ConnectError. ctx is that of the request: the renewal may be another's.
func (c *Conn) Wrap(ctx context.Context, err error) error {
	if reauth, ok := errors.AsType[*gophercloud.ErrUnableToReauthenticate](err); ok {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return c.authError(reauth.ErrReauth)
	}
	if code, ok := errors.AsType[gophercloud.ErrUnexpectedResponseCode](err); ok {
		return c.statusError(code)
	}
	if path := fault.As(err, kindPath); path != nil {
		return path
	}
	if redirect, ok := errors.AsType[*rest.RedirectError](err); ok {
		redirect.Root, redirect.Setting = "/v1", "endpoint (METAL_ENDPOINT)"
		return redirect
	}
	return err
}

func (c *Conn) endpointError(service *gophercloud.ServiceClient, err error) error {
	if StageOf(err) == AtKeystone {
		return err
	}
	e := &ConnectError{Stage: AtEndpoint, URL: c.cfg.Secrets.Redact(service.Endpoint), Err: err}
	if c.keystone != nil {
		e.Found = c.keystone.found
	}
	return e
}

func (c *Conn) authError(err error) error {
	var code gophercloud.ErrUnexpectedResponseCode
	var redirect *rest.RedirectError
	setting := c.keystone.cloud.Setting("auth_url")
	switch {
	case errors.As(err, &code):
		err = c.statusError(code)
	case errors.As(err, &redirect):
		redirect.Root, redirect.Setting = "/auth", setting
		err = redirect
	}
	return &ConnectError{
		Stage: AtKeystone, URL: c.cfg.Secrets.Redact(c.keystone.url), Place: c.keystone.cloud.Place(), Setting: setting,
		Token: c.keystone.token, Err: err,
	}
}

// statusError keeps only the first line of an answer, because schema errors append whole documents.
func (c *Conn) statusError(code gophercloud.ErrUnexpectedResponseCode) *StatusError {
	proxy, _ := c.proxyOf(code.URL)
	size, _ := strconv.ParseInt(code.ResponseHeader.Get(headerSize), 10, 64) // 0 without the header
	return &StatusError{
		Method: code.Method, URL: c.cfg.Secrets.Redact(code.URL), Status: code.Actual,
		Message: FirstLine(c.cfg.Secrets.Redact(faultText(code.Body))), RequestID: code.ResponseHeader.Get("Openstack-Request-Id"),
		Project: c.Project(), Foreign: !isFromIronic(code.Body), Page: !isFromService(code.Body),
		Proxy: proxy, Size: size,
	}
}

// kindUnread is the kind of an error which says that the body of an answer is empty, cut off or not what the API writes.
const kindUnread fault.Kind = "unread"

// unread names the request whose answer could not be read; it returns other errors as they are.
func (c *Conn) unread(method, address string, err error) error {
	_, refused := errors.AsType[gophercloud.ErrUnexpectedResponseCode](err)
	_, unsent := errors.AsType[*url.Error](err)
	if err == nil || refused || unsent || IsInterrupted(err) {
		return err
	}
	e := &fault.Error{Kind: kindUnread, Err: err}
	if proxy, host := c.proxyOf(address); proxy != "" {
		address, e.Advice = address+through(proxy), rest.AdviseProxy(proxy, host)
	}
	what := "cannot be used: " + err.Error()
	switch syntax := (*json.SyntaxError)(nil); {
	case errors.As(err, &syntax):
		what = fmt.Sprintf("is not JSON (%v)", syntax)
	case errors.Is(err, io.ErrUnexpectedEOF):
		what = "is cut off"
	case errors.Is(err, io.EOF):
		what = "is empty"
	}
	e.Fact = c.Redact(fmt.Sprintf("the answer to %s %s %s", method, address, what))
	return e
}

// isFromIronic reports whether the body of an error is from Ironic (reference/ironic.md#error-bodies).
func isFromIronic(body []byte) bool {
	var outer struct {
		ErrorMessage jsonRaw `json:"error_message"`
	}
	return json.Unmarshal(body, &outer) == nil && len(outer.ErrorMessage) > 0
}

// isFromService reports whether the body of an error is from Ironic, from Keystone, or from what checks credentials for them.
func isFromService(body []byte) bool {
	var outer struct {
		Error struct {
			Message string `json:"message"`
		} `json:"error"`
	}
	return isFromIronic(body) || json.Unmarshal(body, &outer) == nil && outer.Error.Message != ""
}

// proxyOf returns the proxy that requests to a URL go through, without its credentials, and the host of the URL; "" if there is none.
func (c *Conn) proxyOf(address string) (proxy, host string) {
	u, err := url.Parse(address)
	if err != nil {
		return "", ""
	}
	return rest.ProxyOf(c.transport, &http.Request{URL: u}), u.Hostname()
}

// faultText extracts Ironic's message from an error body: a string that contains JSON, an object, or plain text
// (reference/ironic.md#error-bodies).
func faultText(body []byte) string {
	var outer struct {
		ErrorMessage jsonRaw `json:"error_message"`
		Error        struct {
			Message string `json:"message"`
		} `json:"error"`
	}
	if json.Unmarshal(body, &outer) != nil {
		return htmlTitle(string(body))
	}
	if outer.Error.Message != "" {
		return outer.Error.Message
	}
	inner := []byte(outer.ErrorMessage)
	var text string
	if json.Unmarshal(inner, &text) == nil {
		inner = []byte(text)
	}
	var fault struct {
		Faultstring string `json:"faultstring"`
		Title       string `json:"title"`
		Description string `json:"description"`
	}
	if json.Unmarshal(inner, &fault) != nil {
		return text
	}
	for _, s := range []string{fault.Faultstring, fault.Description, fault.Title} {
		if s != "" {
			return s
		}
	}
	return ""
}

// htmlTitle replaces a web page, which a proxy has sent, by its title.
func htmlTitle(text string) string {
	_, after, found := strings.Cut(text, "<title>")
	title, _, closed := strings.Cut(after, "</title>")
	if found && closed {
		return "a web page, not the API: " + strings.TrimSpace(title)
	}
	if strings.Contains(strings.ToLower(text), "<html") {
		return "a web page, not the API"
	}
	return text
}

// FirstLine returns the first line of a text without surrounding white space.
func FirstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return strings.TrimSpace(line)
}

// jsonRaw is json.RawMessage whose zero value decodes to nothing.
type jsonRaw []byte

// UnmarshalJSON keeps the bytes.
func (r *jsonRaw) UnmarshalJSON(b []byte) error { *r = append((*r)[:0], b...); return nil }

func (r jsonRaw) into(v any) error {
	if len(r) == 0 {
		return nil
	}
	return document.Decode(r, v)
}
