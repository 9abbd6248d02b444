package api

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
)

// Listing is a list of resources that comes in pages.
type Listing[T any] struct {
	Key    string   // the member of the answer that holds the list, such as "ports"
	Noun   string   // a resource in errors, such as "Port"
	Fields []string // that the list shows
	ID     func(T) string
	Known  func(id string) bool
	Show   func(T) (any, error)
}

// maxLimit is the server's largest page.
const maxLimit = 1000

// Reply answers with the page that limit and marker select. As in Ironic, a full page has a next link even if nothing follows.
func (l Listing[T]) Reply(c *Call, all []T) (Reply, error) {
	items, next, err := l.page(c, all)
	if err != nil {
		return Reply{}, err
	}
	body := []byte(`{"` + l.Key + `": [`)
	for i, item := range items {
		shown, err := l.Show(item)
		if err != nil {
			return Reply{}, err
		}
		encoded, is := shown.(json.RawMessage)
		if !is {
			encoded = Encode(shown)
		}
		if i > 0 {
			body = append(body, ", "...)
		}
		body = append(body, encoded...)
	}
	body = append(body, ']')
	if next != "" {
		body = append(append(body, `, "next": `...), Encode(next)...)
	}
	answer := OK(http.StatusOK, nil)
	answer.Body = append(body, '}')
	return answer, nil
}

func (l Listing[T]) page(c *Call, all []T) (items []T, next string, err error) {
	limit := maxLimit
	if c.Query.Has("limit") {
		asked, err := strconv.Atoi(c.Query.Get("limit"))
		if err != nil {
			return nil, "", Fault(http.StatusBadRequest, "Expected an integer for limit: %s", c.Query.Get("limit"))
		}
		if asked <= 0 {
			return nil, "", Fault(http.StatusBadRequest, "Limit must be positive")
		}
		limit = min(asked, maxLimit)
	}
	start := 0
	if marker := c.Query.Get("marker"); marker != "" {
		if !IsUUID(marker) {
			return nil, "", Fault(http.StatusBadRequest, "Expected UUID for marker: %s", marker)
		}
		if !l.Known(marker) {
			return nil, "", Fault(http.StatusNotFound, "%s %s could not be found.", l.Noun, marker)
		}
		for i, item := range all {
			if l.ID(item) == marker {
				start = i + 1
			}
		}
	}
	items = all[start:]
	if len(items) >= limit && !c.Query.Has("instance_uuid") {
		items = items[:limit]
		next = nextLink(c, l.Fields, limit, l.ID(items[limit-1]))
	}
	return items, next, nil
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
