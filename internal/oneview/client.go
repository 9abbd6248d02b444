// Package oneview talks to an HPE OneView appliance, and shares its server hardware between Ironic and other users of
// OneView: it knows whose hardware is, gives a node a server profile and takes it away again. It knows nothing of
// Terraform.
package oneview

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// Client talks to one appliance. It is safe for concurrent use, and all its users share one session.
type Client struct {
	cfg     Config
	base    *url.URL
	http    *http.Client
	session session
}

// Known reports whether the configuration is complete.
func (c *Client) Known() bool { return c.cfg.Unknown == "" }

// request is one call of the API.
type request struct {
	method string
	path   string // from /rest on
	query  url.Values
	body   any    // becomes JSON; nil: none
	match  string // If-Match; empty: none
}

// answer is what came back, with a status below 300.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// maxBody is more than any answer of an appliance has; a page of 256 server hardware has a few megabytes.
const maxBody = 64 << 20

// get reads a resource. What is temporary is asked again while the appliance's patience lasts: reading does no harm.
func (c *Client) get(ctx context.Context, path string, query url.Values, out any) error {
	return c.persist(ctx, c.cfg.Patience, func() error {
		got, err := c.send(ctx, request{method: http.MethodGet, path: path, query: query})
		if err != nil {
			return err
		}
		return got.into(out)
	})
}

// persist repeats what may be repeated until it works, fails for good, or would take longer than the bound.
func (c *Client) persist(ctx context.Context, bound time.Duration, try func() error) error {
	start, waiting := time.Now(), c.pace()
	for {
		err := try()
		if err == nil || ctx.Err() != nil || !isTransient(err) {
			return err
		}
		wait := max(waiting.next(), retryAfter(err))
		if time.Since(start)+wait > bound {
			return err
		}
		if err := sleep(ctx, wait); err != nil {
			return err
		}
	}
}

// send sends a request once, within the session. Only if the session has ended it logs in again and sends the request
// again, also only once: an appliance says with the same 401 that the user may not do this.
func (c *Client) send(ctx context.Context, r request) (*answer, error) {
	token, version, err := c.login(ctx, "")
	if err != nil {
		return nil, err
	}
	got, err := c.exchange(ctx, r, token, version)
	if isStatus(err, http.StatusUnauthorized) {
		if token, version, err = c.login(ctx, token); err != nil {
			return nil, err
		}
		got, err = c.exchange(ctx, r, token, version)
	}
	if isStatus(err, http.StatusPreconditionFailed) && r.match == "" {
		c.forgetVersion() // without If-Match it says that the appliance no longer speaks this version of the API
	}
	return got, err
}

// exchange sends a request and turns a refusal into a StatusError. An empty token sends none, a zero version neither.
func (c *Client) exchange(ctx context.Context, r request, token string, version int) (*answer, error) {
	start := time.Now()
	req, err := c.newRequest(ctx, r, token, version)
	if err != nil {
		return nil, err
	}
	resp, err := c.http.Do(req)
	if err != nil {
		c.log(ctx, r, start, 0)
		return nil, c.unreachable(err)
	}
	defer resp.Body.Close()
	c.log(ctx, r, start, resp.StatusCode)
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxBody))
	if err != nil {
		return nil, c.unreachable(err)
	}
	if resp.StatusCode >= http.StatusMultipleChoices {
		return nil, c.refused(r, resp, body)
	}
	return &answer{status: resp.StatusCode, header: resp.Header, body: body}, nil
}

func (c *Client) newRequest(ctx context.Context, r request, token string, version int) (*http.Request, error) {
	var body io.Reader
	if r.body != nil {
		content, err := json.Marshal(r.body)
		if err != nil {
			return nil, fmt.Errorf("%s %s: %w", r.method, r.path, err)
		}
		body = bytes.NewReader(content)
	}
	target := *c.base
	target.Path += r.path
	target.RawQuery = r.query.Encode()
	req, err := http.NewRequestWithContext(ctx, r.method, target.String(), body)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", r.method, r.path, err)
	}
	req.Header.Set("Accept", "application/json")
	req.Header.Set("Accept-Language", "en_US")
	if c.cfg.UserAgent != "" {
		req.Header.Set("User-Agent", c.cfg.UserAgent)
	}
	if version != 0 {
		req.Header.Set("X-API-Version", strconv.Itoa(version))
	}
	if token != "" {
		req.Header.Set("auth", token)
	}
	if r.match != "" {
		req.Header.Set("If-Match", r.match)
	}
	if r.body != nil {
		req.Header.Set("Content-Type", "application/json")
		if r.method == http.MethodPatch {
			req.Header.Set("Content-Type", "application/json-patch+json")
		}
	}
	return req, nil
}

// log writes one line for a request, never with headers or bodies, because both carry secrets.
func (c *Client) log(ctx context.Context, r request, start time.Time, status int) {
	c.cfg.Logger.LogAttrs(ctx, slog.LevelDebug, "request to OneView", slog.String("method", r.method), slog.String("path", r.path),
		slog.Int("status", status), slog.Duration("took", time.Since(start)))
}

// into decodes the body of an answer.
func (a *answer) into(out any) error {
	if err := json.Unmarshal(a.body, out); err != nil {
		return &bodyError{err}
	}
	return nil
}

// pace is how long to wait between looks at the same thing: longer and longer, up to ten times the first.
type pace struct{ step, last time.Duration }

func (c *Client) pace() *pace { return &pace{step: c.cfg.PollInterval} }

func (p *pace) next() time.Duration {
	p.last = min(p.last+p.step, 10*p.step)
	return p.last
}

// sleep waits for d, or returns ctx's error as soon as that ends.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
