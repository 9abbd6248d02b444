// Package oneview is a client of an HPE OneView appliance: session, tasks, hardware, profiles and templates. It does not decide who
// may use a server.
package oneview

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/fault"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/rest"
)

// Client sends requests to one appliance. It is safe for concurrent use, and all its users share one session.
type Client struct {
	cfg     Config
	base    *url.URL
	http    *http.Client
	session session
}

// Known reports whether the configuration is complete.
func (c *Client) Known() bool { return c.cfg.Unknown == "" }

type request struct {
	method string
	path   string // from /rest on
	query  url.Values
	body   any    // becomes JSON; nil: none
	match  string // If-Match; empty: none
}

// answer is an answer with a status below 300.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// get reads a resource. It repeats the request after temporary errors, for as long as Patience.
func (c *Client) get(ctx context.Context, path string, query url.Values, out any) error {
	return c.persist(ctx, c.Patience(), func() error {
		got, err := c.send(ctx, request{method: http.MethodGet, path: path, query: query})
		if err != nil {
			return err
		}
		return got.into(out)
	})
}

// persist repeats an operation after temporary errors until it succeeds, returns another error, or the bound is over.
func (c *Client) persist(ctx context.Context, bound time.Duration, try func() error) error {
	start, waiting := time.Now(), c.Backoff()
	for {
		err := try()
		if err == nil || ctx.Err() != nil || !IsTransient(err) {
			return err
		}
		wait := max(waiting.Next(), RetryAfter(err))
		if time.Since(start)+wait > bound {
			return err
		}
		if err := rest.Sleep(ctx, wait); err != nil {
			return err
		}
	}
}

// send sends a request once, within the session. If the answer is 401, the session may have ended: send logs in again and repeats the
// request, only once, because the appliance also answers 401 if the user lacks a permission.
func (c *Client) send(ctx context.Context, r request) (*answer, error) {
	token, version, err := c.login(ctx, "")
	if err != nil {
		return nil, err
	}
	got, err := c.exchange(ctx, r, token, version)
	if IsStatus(err, http.StatusUnauthorized) {
		if token, version, err = c.login(ctx, token); err != nil {
			return nil, err
		}
		got, err = c.exchange(ctx, r, token, version)
	}
	if IsStatus(err, http.StatusPreconditionFailed) && r.match == "" {
		c.forgetVersion() // without If-Match, 412 means that the appliance no longer supports this version of the API
	}
	return got, err
}

// exchange sends a request, and returns a StatusError for a refusal. It omits the header of an empty token or a zero version.
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
	rest.Bound(resp)
	body, err := io.ReadAll(resp.Body)
	if errors.Is(err, rest.ErrTooLarge) {
		return nil, fmt.Errorf("%s %s: %w", r.method, r.path, err)
	}
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

// log writes one line for a request. It omits headers and bodies, because both contain secrets.
func (c *Client) log(ctx context.Context, r request, start time.Time, status int) {
	c.cfg.Logger.LogAttrs(ctx, slog.LevelDebug, "request to OneView", slog.String("method", r.method), slog.String("path", r.path),
		slog.Int("status", status), slog.Duration("took", time.Since(start)))
}

func (a *answer) into(out any) error {
	if err := json.Unmarshal(a.body, out); err != nil {
		return &fault.Error{
			Kind: kindBody, Err: err,
			Fact: fmt.Sprintf("the answer is not from OneView: %v. Check endpoint, and the proxies between this machine and the appliance",
				err),
		}
	}
	return nil
}

// Backoff returns the time to wait between two polls, from the poll interval to ten times that.
func (c *Client) Backoff() *rest.Backoff {
	return &rest.Backoff{First: c.cfg.PollInterval, Max: 10 * c.cfg.PollInterval, Factor: 1.5}
}

// Patience returns how long callers repeat an operation on an appliance that answers with temporary errors.
func (c *Client) Patience() time.Duration { return c.cfg.Patience }
