package api

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
)

// Page is one page of a list.
type Page[T any] struct {
	Items []T
	next  string
}

// maxLimit is the server's largest page.
const maxLimit = 1000

// Paged returns the page of a list that limit and marker select. As in Ironic, a full page has a next link even if nothing
// follows. fields are the fields that the list shows.
func Paged[T any](c *Call, fields []string, all []T, id func(T) string, known func(marker string) error) (Page[T], error) {
	var page Page[T]
	limit := maxLimit
	if c.Query.Has("limit") {
		asked, err := strconv.Atoi(c.Query.Get("limit"))
		if err != nil {
			return page, Fault(http.StatusBadRequest, "Expected an integer for limit: %s", c.Query.Get("limit"))
		}
		if asked <= 0 {
			return page, Fault(http.StatusBadRequest, "Limit must be positive")
		}
		limit = min(asked, maxLimit)
	}
	start := 0
	if marker := c.Query.Get("marker"); marker != "" {
		if !IsUUID(marker) {
			return page, Fault(http.StatusBadRequest, "Expected UUID for marker: %s", marker)
		}
		if err := known(marker); err != nil {
			return page, err
		}
		for i, item := range all {
			if id(item) == marker {
				start = i + 1
			}
		}
	}
	page.Items = all[start:]
	if len(page.Items) >= limit && !c.Query.Has("instance_uuid") {
		page.Items = page.Items[:limit]
		page.next = nextLink(c, fields, limit, id(page.Items[limit-1]))
	}
	return page, nil
}

// nextLink is the URL of the next page. As in Ironic it drops most filters: a client that follows it gets the rest of the
// unfiltered list.
func nextLink(c *Call, fields []string, limit int, marker string) string {
	key, direction := c.Query.Get("sort_key"), c.Query.Get("sort_dir")
	if key == "" {
		key = "id"
	}
	if direction == "" {
		direction = "asc"
	}
	parts := []string{"sort_key=" + key, "sort_dir=" + direction}
	for _, flag := range []string{"associated", "maintenance", "retired"} {
		if set, _ := ParseBool(c.Query.Get(flag)); set {
			parts = append(parts, flag+"=True")
		}
	}
	if c.Query.Has("detail") {
		parts = append(parts, "detail="+PyBool(c.Query.Get("detail")))
	}
	if len(fields) > 0 {
		parts = append(parts, "fields="+strings.Join(fields, ","))
	}
	parts = append(parts, "limit="+strconv.Itoa(limit), "marker="+marker)
	return c.Base + "/v1/" + strings.Join(c.Path, "/") + "?" + strings.Join(parts, "&")
}

// Reply encodes the page; name is the member that holds the list. The items are already JSON.
func (p Page[T]) Reply(name string, items []json.RawMessage) Reply {
	size := 64 + len(p.next)
	for _, item := range items {
		size += len(item) + 2
	}
	body := append(make([]byte, 0, size), `{"`+name+`": [`...)
	for i, item := range items {
		if i > 0 {
			body = append(body, ", "...)
		}
		body = append(body, item...)
	}
	body = append(body, ']')
	if p.next != "" {
		body = append(append(body, `, "next": `...), Encode(p.next)...)
	}
	answer := OK(http.StatusOK, nil)
	answer.Body = append(body, '}')
	return answer
}
