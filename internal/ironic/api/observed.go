package api

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/fault"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/rest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/tracing"
)

// observed handles every request: it records the server's time and writes one log line, without headers and bodies because both
// contain secrets. After an interruption it waits a moment for the answer to a request that changes something. Otherwise the run
// would not know what Ironic has done, and could not record it.
type observed struct {
	next http.RoundTripper
	conn *Conn
}

// RoundTrip sends the request and records its result.
func (o *observed) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := unaddressable(r.URL); err != nil {
		return nil, err
	}
	if err := o.conn.silenceOf(o.key(r)).asks(o.server(r)); err != nil {
		return nil, err
	}
	start, answered := time.Now(), o.awaited(r)
	resp, err := rest.RoundTrip(o.next, r)
	answered()
	traceRequest(r, start, resp)
	attrs := []slog.Attr{
		slog.String("method", r.Method), slog.String("path", r.URL.Path), slog.Duration("took", time.Since(start)),
	}
	logger := o.conn.cfg.Logger
	if err != nil {
		logger.LogAttrs(r.Context(), slog.LevelDebug, "request to "+o.server(r)+" got no answer", attrs...)
		o.note(r, start, 0, isTimeout(err))
		return resp, err
	}
	o.note(r, start, resp.StatusCode, false)
	o.conn.setClock(resp.Header)
	o.conn.pace.note(time.Since(start))
	attrs = append(attrs, slog.Int("status", resp.StatusCode), slog.String("request_id", resp.Header.Get("Openstack-Request-Id")))
	logger.LogAttrs(r.Context(), slog.LevelDebug, "request to "+o.server(r), attrs...)
	if resp.StatusCode == http.StatusRequestEntityTooLarge {
		resp.Header.Set(headerSize, strconv.FormatInt(r.ContentLength, 10))
	}
	return resp, nil
}

// headerSize is the header that tells the code which handles a refusal how large the request was.
const headerSize = "X-Request-Size"

// traceRequest adds a request, and the answer if there is one, to the span in its context. Like the log, the event has no query, header or
// body.
func traceRequest(r *http.Request, start time.Time, resp *http.Response) {
	span := trace.SpanFromContext(r.Context())
	if !span.IsRecording() {
		return
	}
	about := []attribute.KeyValue{
		semconv.HTTPRequestMethodKey.String(r.Method), semconv.URLPath(r.URL.Path), semconv.ServerAddress(r.URL.Hostname()),
		attribute.Float64("http.client.request.duration", time.Since(start).Seconds()),
	}
	if resp != nil {
		about = append(about, semconv.HTTPResponseStatusCode(resp.StatusCode),
			tracing.RequestID.String(resp.Header.Get("Openstack-Request-Id")))
	}
	span.AddEvent("request", trace.WithAttributes(about...))
}

// unaddressable returns an error of kindPath for a URL with such a name.
func unaddressable(u *url.URL) error {
	for name := range strings.SplitSeq(u.EscapedPath(), "/") {
		if plain, err := url.PathUnescape(name); err == nil && (plain == "." || plain == "..") {
			return &fault.Error{Kind: kindPath, Fact: fmt.Sprintf("%q cannot be the name of an object in a request. Use its UUID", plain)}
		}
	}
	return nil
}

// setClock records how far the server's clock is ahead of the local one. It uses only answers with an API version, which come from
// Ironic itself, because Keystone and proxies have other clocks. The header has whole seconds, so setClock ignores small
// differences.
func (c *Conn) setClock(answer http.Header) {
	date, err := http.ParseTime(answer.Get("Date"))
	if err != nil || answer.Get("X-OpenStack-Ironic-API-Maximum-Version") == "" {
		return
	}
	ahead := time.Until(date)
	if ahead.Abs() <= 2*time.Second {
		ahead = 0
	}
	c.clock.Store(int64(ahead))
	c.hosts.Lock()
	defer c.hosts.Unlock()
	if !c.hosts.known {
		c.hosts.least, c.hosts.most, c.hosts.known = ahead, ahead, true
	}
	c.hosts.least, c.hosts.most = min(c.hosts.least, ahead), max(c.hosts.most, ahead)
}

func (o *observed) server(r *http.Request) string {
	if k := o.conn.keystone; k != nil && strings.HasPrefix(r.URL.String(), k.url) {
		return "Keystone"
	}
	return "Ironic"
}

// key identifies the server that a request goes to: several may have one host.
func (o *observed) key(r *http.Request) string { return o.server(r) + " " + r.URL.Host }

// awaited writes a log line every silentFor until stop is called, because a request still has no answer.
func (o *observed) awaited(r *http.Request) (stop func()) {
	start := time.Now()
	var stopped atomic.Bool
	var tell func()
	tell = func() {
		if stopped.Load() {
			return
		}
		o.conn.silenceOf(o.key(r)).tells()
		o.log(r, fmt.Sprintf("no answer for %s", time.Since(start).Round(time.Second)), "still waiting for it")
		time.AfterFunc(silentFor, tell)
	}
	timer := time.AfterFunc(silentFor, tell)
	return func() {
		stopped.Store(true)
		timer.Stop()
	}
}

// note records whether a request was answered, and tells how long the server has been silent. A proxy's answer is none.
func (o *observed) note(r *http.Request, sent time.Time, status int, timedOut bool) {
	answered := status != 0 && status != http.StatusBadGateway && status != http.StatusServiceUnavailable &&
		status != http.StatusGatewayTimeout
	if lasts, due := o.conn.silenceOf(o.key(r)).heard(sent, answered, timedOut); due {
		o.log(r, fmt.Sprintf("no answer of %s for %s", o.server(r), lasts.Round(time.Second)), "asking again where something waits for it")
	}
}

// log writes a log line about a request. It has all facts in its text, because Terraform writes attributes in no order.
func (o *observed) log(r *http.Request, fact, next string) {
	text := fmt.Sprintf("%s %s://%s%s: %s; %s", r.Method, r.URL.Scheme, r.URL.Host, r.URL.Path, fact, next)
	o.conn.tell(r.Context(), text)
}

func (c *Conn) tell(ctx context.Context, text string) {
	if c.cfg.Silent != nil {
		c.cfg.Silent(text)
	}
	c.cfg.Logger.LogAttrs(context.WithoutCancel(ctx), slog.LevelWarn, text)
}
