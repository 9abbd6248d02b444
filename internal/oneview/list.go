package oneview

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/rest"
)

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

func kept[T any](all []T, holds func(*T) bool) []T {
	var some []T
	for i := range all {
		if holds(&all[i]) {
			some = append(some, all[i])
		}
	}
	return some
}

func fits(have, want string) bool { return want == "" || strings.EqualFold(have, want) }

func fitsURI(have, want string) bool { return want == "" || SameURI(have, want) }
