package oneview

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"strconv"
	"strings"
)

// collection is a kind of resource, as it is called in paths behind /rest.
type collection string

// The collections that are read here.
const (
	hardwareCollection collection = "server-hardware"
	templateCollection collection = "server-profile-templates"
	profileCollection  collection = "server-profiles"
)

// idPattern is what the last step of a resource's path may be.
var idPattern = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

// path checks that a URI names one resource of the collection and returns its path on the appliance. A request to the path
// of a whole collection could do harm to every resource in it.
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

// canonical is the URI of a resource as the appliance itself writes it, or as it is if it is none.
func (l collection) canonical(uri string) string {
	if path, err := l.path(uri); err == nil {
		return path
	}
	return uri
}

// pageSize is how many resources a page is asked to have. The appliance may give fewer.
const pageSize = 256

// list reads all pages of a collection. Filters are written as the appliance wants them; see equals.
func list[T any](ctx context.Context, c *Client, of collection, filters []string) ([]T, error) {
	query := url.Values{"start": {"0"}, "count": {strconv.Itoa(pageSize)}}
	for _, filter := range filters {
		query.Add("filter", filter)
	}
	path := "/rest/" + string(of)
	var all []T
	for seen := map[string]bool{}; ; {
		var page struct {
			Members     []json.RawMessage `json:"members"`
			NextPageURI string            `json:"nextPageUri"`
		}
		if err := c.get(ctx, path, query, &page); err != nil {
			return nil, fmt.Errorf("list %s: %w", of, err)
		}
		for _, member := range page.Members {
			var item T
			if err := json.Unmarshal(member, &item); err != nil {
				return nil, fmt.Errorf("list %s: %w", of, err)
			}
			all = append(all, item)
		}
		// Of nextPageUri only the query is used, and only once: appliances have led back to the same page.
		seen[query.Encode()] = true
		next, err := url.Parse(page.NextPageURI)
		if err != nil {
			return nil, fmt.Errorf("list %s: next page: %w", of, err)
		}
		query = next.Query()
		if len(query) == 0 || seen[query.Encode()] || len(page.Members) == 0 {
			return all, nil
		}
	}
}

// equals is a filter for an attribute, compared by the appliance without regard to case; an empty value filters nothing. Values
// with quotes cannot be written in a filter. Whoever uses it compares again: appliances have ignored filters.
func equals(attribute, value string) []string {
	if value == "" || strings.ContainsAny(value, `'"`) {
		return nil
	}
	return []string{`"` + attribute + `='` + value + `'"`}
}

// begins is a filter for attributes that begin with a value, of which % and _ match more than themselves; see equals.
func begins(attribute, value string) []string {
	if value == "" || strings.ContainsAny(value, `'"`) {
		return nil
	}
	return []string{`"` + attribute + ` matches '` + value + `%'"`}
}

// kept are the items that a test holds for.
func kept[T any](all []T, holds func(*T) bool) []T {
	var some []T
	for i := range all {
		if holds(&all[i]) {
			some = append(some, all[i])
		}
	}
	return some
}

// fits reports whether an attribute is what a filter wants, which may be anything.
func fits(have, want string) bool { return want == "" || strings.EqualFold(have, want) }

// fitsURI is fits for URIs.
func fitsURI(have, want string) bool { return want == "" || sameURI(have, want) }
