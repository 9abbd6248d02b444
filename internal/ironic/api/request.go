package api

import (
	"context"
	"net/http"
	"strings"

	"github.com/gophercloud/gophercloud/v2"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/rest"
)

// Request sends a request. path is relative to /v1/ and includes the query. If out is nil, the answer's body is ignored. Numbers in maps
// keep their digits, as json.Number.
func (c *Conn) Request(ctx context.Context, method, path string, body, out any) error {
	if out == nil {
		return c.request(ctx, method, path, body, nil)
	}
	var answer jsonRaw // gophercloud would send a request again whose answer has a value of another type
	if err := c.request(ctx, method, path, body, &answer); err != nil {
		return err
	}
	return c.unread(method, c.Address()+path, answer.into(out))
}

func (c *Conn) request(ctx context.Context, method, path string, body, out any) error {
	service, err := c.Service(ctx)
	if err != nil {
		return err
	}
	opts := &gophercloud.RequestOpts{
		JSONBody: body, JSONResponse: out, OkCodes: []int{http.StatusOK, http.StatusCreated, http.StatusAccepted, http.StatusNoContent},
	}
	_, err = service.Request(ctx, method, service.ServiceURL(path), opts)
	return c.Wrap(ctx, err)
}

// Microversion returns the version that requests are sent with. It connects if necessary.
func (c *Conn) Microversion(ctx context.Context) (Microversion, error) {
	service, err := c.Service(ctx)
	if err != nil {
		return 0, err
	}
	return ParseMicroversion(service.Microversion)
}

// Requires returns nil if the version in use has a feature that exists since a version. Otherwise it returns an error of KindVersion, or
// the reason why Ironic could not be asked.
func (c *Conn) Requires(ctx context.Context, since Microversion, feature string) error {
	have, err := c.Microversion(ctx)
	if err != nil || have >= since {
		return err
	}
	server, err := c.Highest(ctx)
	if err != nil {
		return err
	}
	return TooOld{Feature: feature, Needs: since, Have: have, Server: server}.Err()
}

// Highest returns the highest version that the server supports, regardless of the configured upper bound.
func (c *Conn) Highest(ctx context.Context) (Microversion, error) {
	if _, err := c.Service(ctx); err != nil {
		return 0, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.server, nil
}

// Create sends a POST that must not be executed twice. After an error that leaves the result open, it calls look, which reads the
// object by the UUID that the caller chose; a 404 means that the POST may be sent again. It also looks after an interruption, so
// that the caller can record an object that exists.
func (c *Conn) Create(ctx context.Context, post, look func(context.Context) error) error {
	for try := 1; ; try++ {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		err := post(ctx)
		if err == nil {
			return nil
		}
		interrupted := ctx.Err() != nil
		uncertain := IsInterrupted(err) || IsTransient(err) || (try > 1 && IsStatus(err, http.StatusConflict, ""))
		if !uncertain {
			return err
		}
		answered, stop := rest.Outlast(ctx)
		found := look(answered)
		stop()
		if found == nil {
			return nil
		}
		if interrupted {
			return ctx.Err()
		}
		if !IsNotFound(found) || try >= Retries {
			return err
		}
		if err := rest.Sleep(ctx, FirstBackoff<<min(try-1, 3)); err != nil {
			return err
		}
	}
}

// NewestService returns a service client of the newest version that both the server and the client support, whatever is configured. The
// Conn must be connected.
func (c *Conn) NewestService() *gophercloud.ServiceClient {
	service := *c.service
	service.Microversion = min(c.server, newest).String()
	return &service
}

// Inspector returns a service client of ironic-inspector, with the same credentials; nil if the site has none. Its Endpoint ends with /v1/.
func (c *Conn) Inspector(ctx context.Context) (*gophercloud.ServiceClient, error) {
	if c.cfg.InspectorEndpoint == "" {
		return nil, nil //nolint:nilnil // a site without ironic-inspector is usual
	}
	service, err := c.Service(ctx)
	if err != nil {
		return nil, err
	}
	inspector := *service
	inspector.Type, inspector.Microversion = "baremetal-introspection", ""
	inspector.Endpoint = strings.TrimSuffix(strings.TrimRight(c.cfg.InspectorEndpoint, "/"), "/v1") + "/v1/"
	return &inspector, nil
}
