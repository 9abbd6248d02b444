package ironic

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/gophercloud/gophercloud/v2"
)

// Microversion is the minor number of an API version: 82 is 1.82. Ironic's major number has always been 1.
type Microversion int

// newest is the version of Ironic 39.0, the newest that this provider is tested with. The client uses this version with newer
// servers, and the highest common version with older ones.
const newest Microversion = 115

// ParseMicroversion parses a version such as "1.82".
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

// Microversion returns the version that requests are sent with. It connects if necessary.
func (c *Client) Microversion(ctx context.Context) (Microversion, error) {
	api, err := c.api(ctx)
	if err != nil {
		return 0, err
	}
	return ParseMicroversion(api.Microversion)
}

// Requires returns nil if the version in use has a feature that exists since a version. Otherwise it returns a VersionError, or
// the reason why Ironic could not be asked.
func (c *Client) Requires(ctx context.Context, since Microversion, feature string) error {
	have, err := c.Microversion(ctx)
	if err != nil || have >= since {
		return err
	}
	server, err := c.Highest(ctx)
	if err != nil {
		return err
	}
	return &VersionError{Feature: feature, Needs: since, Have: have, Server: server}
}

// Highest returns the highest version that the server supports, regardless of the configured upper bound.
func (c *Client) Highest(ctx context.Context) (Microversion, error) {
	if _, err := c.api(ctx); err != nil {
		return 0, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.server, nil
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
		return 0, c.endpointError(service, c.wrap(ctx, err))
	}
	version, err := ParseMicroversion(answer.Version.Highest)
	if err != nil {
		return 0, c.endpointError(service, errors.New("the answer contains no API version"))
	}
	return version, nil
}

// Driver is a hardware type that conductors have enabled, with the interfaces that nodes get which name none.
type Driver struct {
	Name    string `json:"name"`
	Boot    string `json:"default_boot_interface"`
	Inspect string `json:"default_inspect_interface"`
}

// Drivers returns the drivers that the site's conductors have enabled, by name.
func (c *Client) Drivers(ctx context.Context) ([]Driver, error) {
	var answer struct {
		Drivers []Driver `json:"drivers"`
	}
	if err := c.Request(ctx, http.MethodGet, "drivers?detail=true", nil, &answer); err != nil {
		return nil, err
	}
	slices.SortFunc(answer.Drivers, func(a, b Driver) int { return cmp.Compare(a.Name, b.Name) })
	return answer.Drivers, nil
}

// anyDriver returns an error unless a conductor has registered a driver. Without a driver Ironic accepts no operation. An Ironic that does not let
// the user see its drivers is up, too.
func (c *Client) anyDriver(ctx context.Context, service *gophercloud.ServiceClient, version Microversion) error {
	var answer struct {
		Drivers []jsonRaw `json:"drivers"`
	}
	headers := map[string]string{"X-OpenStack-Ironic-API-Version": min(version, newest).String()}
	_, err := service.Get(ctx, service.ServiceURL("drivers"), &answer, &gophercloud.RequestOpts{MoreHeaders: headers})
	err = c.wrap(ctx, err)
	var status *StatusError
	if errors.As(err, &status) && !status.Foreign && status.Status != http.StatusUnauthorized && !IsTransient(err) {
		return nil
	}
	if err == nil && len(answer.Drivers) == 0 {
		err = errors.New("no conductor is running: Ironic offers no driver")
	}
	if err != nil {
		return c.endpointError(service, err)
	}
	return nil
}
