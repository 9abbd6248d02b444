package fakeoneview

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// list answers with one page of documents, after filter and sort. Documents come in order of creation.
func (s *Server) list(c *call, category string, all []map[string]any) (Reply, error) {
	found, err := filtered(c, category, all)
	if err != nil {
		return Reply{}, err
	}
	if err := sortBy(c.query.Get("sort"), found); err != nil {
		return Reply{}, err
	}
	limit := s.pageLimit(category)
	start, err := number(c.query, "start", 0)
	if err != nil {
		return Reply{}, err
	}
	count, err := number(c.query, "count", -1)
	if err != nil {
		return Reply{}, err
	}
	if count < 0 || count > limit { // -1 means as many as possible
		count = limit
	}
	start = min(max(start, 0), len(found))
	page := found[start:min(start+count, len(found))]
	for _, member := range page {
		s.spell(member)
	}
	document := map[string]any{
		"type": category + "-list", "category": category, "uri": c.uri, "eTag": nil, "created": nil, "modified": nil,
		"start": start, "count": len(page), "total": len(found), "members": page, "nextPageUri": nil, "prevPageUri": nil,
	}
	if start+len(page) < len(found) && len(page) > 0 {
		document["nextPageUri"] = c.pageURI(start+count, count)
	}
	if start > 0 && count > 0 {
		document["prevPageUri"] = c.pageURI(max(start-count, 0), count)
	}
	return jsonReply(http.StatusOK, document), nil
}

func (s *Server) pageLimit(category string) int {
	limit := 256
	if category == pathProfiles || category == pathTemplates {
		limit = 64
	}
	if s.PageLimit > 0 {
		limit = min(limit, s.PageLimit)
	}
	return limit
}

// pageURI returns the URI of another page of the same list.
func (c *call) pageURI(start, count int) string {
	query := url.Values{}
	for key, values := range c.query {
		query[key] = values
	}
	query.Set("start", strconv.Itoa(start))
	query.Set("count", strconv.Itoa(count))
	path, _, _ := strings.Cut(c.uri, "?")
	return path + "?" + query.Encode()
}

func number(query url.Values, key string, otherwise int) (int, error) {
	if query.Get(key) == "" {
		return otherwise, nil
	}
	value, err := strconv.Atoi(query.Get(key))
	if err != nil {
		return 0, badField(key, "%q is not a number", query.Get(key))
	}
	return value, nil
}

// filterable returns the attributes that filters of a collection may use; nil means all.
func filterable(category string) []string {
	switch category {
	case pathProfiles:
		return []string{
			"name", "description", "serialNumber", "uuid", "affinity", "macType", "wwnType", "serialNumberType",
			"serverProfileTemplateUri", "templateCompliance", "status", "state",
		}
	case pathTemplates:
		return []string{
			"name", "description", "affinity", "macType", "wwnType", "serialNumberType", "status", "serverHardwareTypeUri",
			"enclosureGroupUri",
		}
	}
	return nil
}

// condition is one parsed filter.
type condition struct {
	not              bool
	attribute, value string
	operator         string
}

// parseFilter parses "[not] attribute operator 'value'". Double quotes around the filter, and single quotes around the
// attribute or a number, are optional. A value cannot contain a single quote.
func parseFilter(filter string) (condition, error) {
	pattern := regexp.MustCompile(`^(?i:(not)\s+)?'?([\w.]+)'?` +
		`\s*(==|=|<=|>=|<|>|\b(?i:eq|seq|ne|sne|matches|smatches|regex|sregex)\b)\s*` +
		`(?:'([^']*)'|(-?[\d.]+))$`)
	inner := strings.TrimSpace(filter)
	if len(inner) >= 2 && strings.HasPrefix(inner, `"`) && strings.HasSuffix(inner, `"`) {
		inner = strings.TrimSpace(inner[1 : len(inner)-1])
	}
	parts := pattern.FindStringSubmatch(inner)
	if parts == nil {
		return condition{}, fault(http.StatusBadRequest, "INVALID_FILTER", "The filter %s is not valid.", filter)
	}
	return condition{not: parts[1] != "", attribute: parts[2], operator: strings.ToLower(parts[3]), value: parts[4] + parts[5]}, nil
}

func filtered(c *call, category string, all []map[string]any) ([]map[string]any, error) {
	found := slices.Clone(all)
	if found == nil {
		found = []map[string]any{}
	}
	for _, filter := range c.query["filter"] {
		wanted, err := parseFilter(filter)
		if err != nil {
			return nil, err
		}
		if known := filterable(category); known != nil && !slices.Contains(known, wanted.attribute) {
			return nil, fault(http.StatusBadRequest, "INVALID_FILTER", "The attribute %s cannot be used in a filter.", wanted.attribute)
		}
		var bad error
		found = slices.DeleteFunc(found, func(document map[string]any) bool {
			holds, err := wanted.holds(attribute(document, wanted.attribute))
			if err != nil {
				bad = err
			}
			return holds == wanted.not
		})
		if bad != nil {
			return nil, bad
		}
	}
	return found, nil
}

// attribute returns a member of a document as a string, "" if it is null. Dots in the path select members of inner objects.
func attribute(document map[string]any, path string) string {
	var value any = document
	for key := range strings.SplitSeq(path, ".") {
		inner, _ := value.(map[string]any)
		value = inner[key]
	}
	if value == nil {
		return ""
	}
	return fmt.Sprint(value)
}

// holds reports whether a value meets the condition without its "not".
func (w condition) holds(value string) (bool, error) {
	switch w.operator {
	case "=", "eq":
		return strings.EqualFold(value, w.value), nil
	case "==", "seq":
		return value == w.value, nil
	case "ne":
		return !strings.EqualFold(value, w.value), nil
	case "sne":
		return value != w.value, nil
	case "matches":
		return matches("(?is)^"+like(w.value)+"$", value)
	case "smatches":
		return matches("(?s)^"+like(w.value)+"$", value)
	case "regex":
		return matches("(?i)"+w.value, value)
	case "sregex":
		return matches(w.value, value)
	}
	return w.compares(value)
}

func matches(pattern, value string) (bool, error) {
	compiled, err := regexp.Compile(pattern)
	if err != nil {
		return false, fault(http.StatusBadRequest, "INVALID_FILTER", "The pattern %s is not valid.", pattern)
	}
	return compiled.MatchString(value), nil
}

// like converts an SQL LIKE pattern to a regular expression: % means any text, _ any character.
func like(pattern string) string {
	return strings.NewReplacer("%", ".*", "_", ".").Replace(regexp.QuoteMeta(pattern))
}

// compares applies the numeric operators.
func (w condition) compares(value string) (bool, error) {
	want, err := strconv.ParseFloat(w.value, 64)
	if err != nil {
		return false, fault(http.StatusBadRequest, "INVALID_FILTER", "The value %s is not a number.", w.value)
	}
	got, err := strconv.ParseFloat(value, 64)
	if err != nil {
		return false, nil //nolint:nilerr // a text compares false with every number
	}
	switch w.operator {
	case "<":
		return got < want, nil
	case ">":
		return got > want, nil
	case "<=":
		return got <= want, nil
	}
	return got >= want, nil
}

// sortBy sorts stably by an order such as "name:asc,status:desc".
func sortBy(order string, documents []map[string]any) error {
	if order == "" {
		return nil
	}
	keys := strings.Split(order, ",")
	for _, key := range slices.Backward(keys) {
		name, direction, _ := strings.Cut(strings.TrimSpace(key), ":")
		direction = strings.TrimSuffix(direction, ":natural")
		down := direction == "desc" || direction == "descending"
		if !down && direction != "" && direction != "asc" && direction != "ascending" && direction != "natural" {
			return badField("sort", "%q is no direction", direction)
		}
		slices.SortStableFunc(documents, func(a, b map[string]any) int {
			result := cmp.Compare(attribute(a, name), attribute(b, name))
			if down {
				return -result
			}
			return result
		})
	}
	return nil
}
