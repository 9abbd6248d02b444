package ironic

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/gophercloud/gophercloud/v2"
)

// Microversion is the minor number of an API version: 82 is 1.82. Ironic has had no other major number.
type Microversion int

// newest is that of Ironic 39.0, the newest that this provider is tested with. A server that knows more is spoken to in
// it; one that knows less works as far as its features go.
const newest Microversion = 115

// First versions of the features that this package uses where there are (reference ironic-facts.md 1.4).
const (
	versionHistory      Microversion = 78
	versionInventory    Microversion = 81
	versionShard        Microversion = 82
	versionParentNode   Microversion = 83
	versionVirtualMedia Microversion = 89 // /nodes/{node}/vmedia
)

// ParseMicroversion reads "1.82".
func ParseMicroversion(s string) (Microversion, error) {
	major, minor, ok := strings.Cut(s, ".")
	n, err := strconv.Atoi(minor)
	if !ok || major != "1" || err != nil || n < 1 {
		return 0, fmt.Errorf("%q is not a microversion of Ironic, such as \"1.82\"", s)
	}
	return Microversion(n), nil
}

// String returns "1.82" for 82.
func (v Microversion) String() string { return "1." + strconv.Itoa(int(v)) }

// Microversion returns the version that requests are sent with, connecting if that has not happened yet.
func (c *Client) Microversion(ctx context.Context) (Microversion, error) {
	api, err := c.api(ctx)
	if err != nil {
		return 0, err
	}
	return ParseMicroversion(api.Microversion)
}

// Requires returns nil if the feature, which Ironic has had since a version, can be used here, else a VersionError
// or why Ironic could not be asked.
func (c *Client) Requires(ctx context.Context, since Microversion, feature string) error {
	have, err := c.Microversion(ctx)
	if err != nil || have >= since {
		return err
	}
	server, err := c.highest(ctx)
	if err != nil {
		return err
	}
	return &VersionError{Feature: feature, Needs: since, Have: have, Server: server}
}

// LimitRequires returns nil if the provisioning limit can be kept here, else as Requires: its scope needs what an old Ironic
// does not have.
func (c *Client) LimitRequires(ctx context.Context) error {
	if c.cfg.Limit.Max == 0 || c.cfg.Limit.Scope != ScopeShard {
		return nil
	}
	return c.Requires(ctx, versionShard, "provisioning_limit.scope=shard")
}

// highest is the highest version that the server knows, whatever upper bound the configuration sets.
func (c *Client) highest(ctx context.Context) (Microversion, error) {
	if _, err := c.api(ctx); err != nil {
		return 0, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.server, nil
}

// awaitAPI asks the server for its versions; while Config.APITimeout lasts it asks again, and also waits for a
// conductor to serve at least one driver.
func (c *Client) awaitAPI(ctx context.Context, service *gophercloud.ServiceClient) (Microversion, error) {
	deadline := time.Now().Add(c.cfg.APITimeout)
	for {
		version, err := c.serverVersion(ctx, service)
		if err == nil && c.cfg.APITimeout > 0 {
			err = c.anyDriver(ctx, service, version)
		}
		if err == nil {
			return version, nil
		}
		wait := min(c.cfg.PollInterval, time.Until(deadline))
		if wait <= 0 {
			return 0, err
		}
		if err := sleep(ctx, wait); err != nil {
			return 0, err
		}
	}
}

// serverVersion reads the highest version from /v1, which needs no credentials.
func (c *Client) serverVersion(ctx context.Context, service *gophercloud.ServiceClient) (Microversion, error) {
	var answer struct {
		Version struct {
			Highest string `json:"version"`
		} `json:"version"`
	}
	_, err := service.Get(ctx, service.Endpoint, &answer, &gophercloud.RequestOpts{OkCodes: []int{http.StatusOK}})
	if err != nil {
		return 0, &EndpointError{Endpoint: c.secrets.redact(service.Endpoint), Err: c.wrap(err)}
	}
	version, err := ParseMicroversion(answer.Version.Highest)
	if err != nil {
		return 0, &EndpointError{Endpoint: c.secrets.redact(service.Endpoint), Err: fmt.Errorf("the answer names no API version")}
	}
	return version, nil
}

// anyDriver returns an error unless a conductor has registered a driver: without one Ironic accepts no work.
func (c *Client) anyDriver(ctx context.Context, service *gophercloud.ServiceClient, version Microversion) error {
	var answer struct {
		Drivers []jsonRaw `json:"drivers"`
	}
	headers := map[string]string{"X-OpenStack-Ironic-API-Version": min(version, newest).String()}
	_, err := service.Get(ctx, service.ServiceURL("drivers"), &answer, &gophercloud.RequestOpts{MoreHeaders: headers})
	if err != nil {
		return &EndpointError{Endpoint: c.secrets.redact(service.Endpoint), Err: c.wrap(err)}
	}
	if len(answer.Drivers) == 0 {
		return &EndpointError{Endpoint: c.secrets.redact(service.Endpoint), Err: fmt.Errorf("no conductor is running: Ironic offers no driver")}
	}
	return nil
}
