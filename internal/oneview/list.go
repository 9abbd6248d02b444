package oneview

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/rest"
)

// collection is the name of a kind of resource in paths below /rest.
type collection string

// The collections that this package reads.
const (
	hardwareCollection collection = "server-hardware"
	templateCollection collection = "server-profile-templates"
	profileCollection  collection = "server-profiles"
)

// idPattern matches the last segment of a resource's path.
var idPattern = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

// path checks that a URI names one resource of the collection, and returns its path on the appliance. A request to the path of a
// collection, such as DELETE, could affect every resource in it.
func (l collection) path(uri string) (string, error) {
	path := strings.TrimSpace(uri)
	if u, err := url.Parse(path); err == nil && u.Scheme != "" && u.Host != "" {
		path = u.Path
	}
	prefix := "/rest/" + string(l) + "/"
	path = strings.TrimRight(path, "/")
	if len(path) <= len(prefix) || !strings.EqualFold(path[:len(prefix)], prefix) || !idPattern.MatchString(path[len(prefix):]) {
		return "", fmt.Errorf("%q is not the URI of a resource of OneView: it must look like %s<id>", uri, prefix)
	}
	return prefix + path[len(prefix):], nil
}

// canonical returns the URI of a resource in the appliance's spelling. It does not change a text that is no URI of a resource.
func (l collection) canonical(uri string) string {
	if path, err := l.path(uri); err == nil {
		return path
	}
	return uri
}

// pageSize is the requested number of resources on a page. The appliance may return fewer.
const pageSize = 256

// list reads all pages of a collection. Filters have the appliance's syntax; see equals.
func list[T any](ctx context.Context, c *Client, of collection, filters []string) ([]T, error) {
	query := url.Values{"start": {"0"}, "count": {strconv.Itoa(pageSize)}}
	for _, filter := range filters {
		query.Add("filter", filter)
	}
	path := "/rest/" + string(of)
	var all []T
	var read rest.Listing
	_, _ = read.Add(0, query.Encode()) // the first page
	for {
		var page struct {
			Members     []json.RawMessage `json:"members"`
			NextPageURI string            `json:"nextPageUri"`
		}
		if err := c.get(ctx, path, query, &page); err != nil {
			return nil, fmt.Errorf("list %s: %w", of, err)
		}
		size := 0
		for _, member := range page.Members {
			size += len(member)
			var item T
			if err := json.Unmarshal(member, &item); err != nil {
				return nil, fmt.Errorf("list %s: %w", of, err)
			}
			all = append(all, item)
		}
		// list uses only the query of nextPageUri, and each query once, because appliances have returned the URI of the same page.
		next, err := url.Parse(page.NextPageURI)
		if err != nil {
			return nil, fmt.Errorf("list %s: next page: %w", of, err)
		}
		query = next.Query()
		again, err := read.Add(size, query.Encode())
		if err != nil {
			return nil, fmt.Errorf("list %s: %w", of, err)
		}
		if len(query) == 0 || again || len(page.Members) == 0 {
			return all, nil
		}
	}
}

// equals returns a filter for the value of an attribute; none if the value is empty or has quotes, which a filter cannot contain. The
// appliance ignores case. Callers compare the results again, because appliances have ignored filters.
func equals(attribute, value string) []string {
	if value == "" || strings.ContainsAny(value, `'"`) {
		return nil
	}
	return []string{`"` + attribute + `='` + value + `'"`}
}

// begins returns a filter for attributes that begin with a value, in which % and _ are wildcards; see equals.
func begins(attribute, value string) []string {
	if value == "" || strings.ContainsAny(value, `'"`) {
		return nil
	}
	return []string{`"` + attribute + ` matches '` + value + `%'"`}
}

// kept returns the items for which holds returns true.
func kept[T any](all []T, holds func(*T) bool) []T {
	var some []T
	for i := range all {
		if holds(&all[i]) {
			some = append(some, all[i])
		}
	}
	return some
}

// fits reports whether an attribute has the wanted value; an empty one accepts all.
func fits(have, want string) bool { return want == "" || strings.EqualFold(have, want) }

// fitsURI is fits for URIs.
func fitsURI(have, want string) bool { return want == "" || SameURI(have, want) }
