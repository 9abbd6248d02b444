package replay

import (
	"cmp"
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// Difference is a place in an answer that the fake has not as Ironic has it.
type Difference struct {
	Request    string // the method and the path, with {} in the place of names
	Place      string // of the answer, such as properties.cpus; "status" for that of HTTP
	Real, Fake string
}

var (
	uuid  = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
	clock = regexp.MustCompile(`\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(\+00:00|Z)?`)
	// listed are the steps in the events of a history, as Python writes them.
	listed = regexp.MustCompile(`steps=\[.*\]`)
	base   = regexp.MustCompile(`http://(127\.0\.0\.1:\d+|ironic\.test)|localhost:\d+`)
)

// comparison compares answers. It learns which UUID of the fake stands for which one of Ironic.
type comparison struct {
	fakeOf, realOf map[string]string
	found          []Difference
	request        string
}

// toFake replaces the UUIDs of Ironic in a text by those of the fake.
func (c *comparison) toFake(text string) string {
	return uuid.ReplaceAllStringFunc(text, func(id string) string {
		if fake, known := c.fakeOf[id]; known {
			return fake
		}
		return id
	})
}

// differ notes a difference.
func (c *comparison) differ(place string, real, fake any) {
	show := func(value any) string {
		text, _ := json.Marshal(value) // came from JSON
		return string(text)
	}
	c.found = append(c.found, Difference{Request: c.request, Place: place, Real: show(real), Fake: show(fake)})
}

// values compares two values. Of a node with which Ironic is not done, only the names of its fields count.
func (c *comparison) values(place string, real, fake any) {
	switch r := real.(type) {
	case map[string]any:
		if f, is := fake.(map[string]any); is {
			c.objects(place, r, f)
			return
		}
	case []any:
		if f, is := fake.([]any); is && len(r) == len(f) {
			f = c.inOrder(r, f)
			for i := range r {
				c.values(place+"[]", r[i], f[i])
			}
			return
		}
	case string:
		if f, is := fake.(string); is && c.texts(r, f) {
			return
		}
	default:
		if real == fake {
			return
		}
	}
	c.differ(place, real, fake)
}

// objects compares two objects.
func (c *comparison) objects(place string, real, fake map[string]any) {
	unfinished := busy(real)
	keys := maps.Clone(real)
	maps.Copy(keys, fake)
	if id, is := real["uuid"].(string); is {
		other, _ := fake["uuid"].(string)
		c.texts(id, other) // the other fields may have it
	}
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		in := strings.TrimPrefix(place+"."+key, ".")
		r, isReal := real[key]
		f, isFake := fake[key]
		switch {
		case !isReal:
			c.differ(in, "(absent)", f)
		case !isFake:
			c.differ(in, r, "(absent)")
		case !unfinished && key != "duration_seconds":
			c.values(in, r, f)
		}
	}
}

// inOrder returns the items of the fake in the order of Ironic, if both are objects with UUIDs: two that were created at the same time have
// no order.
func (c *comparison) inOrder(real, fake []any) []any {
	id := func(item any) string {
		object, _ := item.(map[string]any)
		text, _ := object["uuid"].(string)
		return text
	}
	ordered := make([]any, len(real))
	for i, item := range real {
		at := slices.IndexFunc(fake, func(other any) bool { return id(other) != "" && id(other) == c.fakeOf[id(item)] })
		if at < 0 {
			return fake
		}
		ordered[i] = fake[at]
	}
	return ordered
}

// texts reports whether two texts are equal but for UUIDs, times and addresses.
func (c *comparison) texts(real, fake string) bool {
	if isUUID(real) && isUUID(fake) && c.fakeOf[real] == "" && c.realOf[fake] == "" {
		c.fakeOf[real], c.realOf[fake] = fake, real
	}
	even := func(text string) string {
		text = base.ReplaceAllString(clock.ReplaceAllString(text, "TIME"), "")
		return listed.ReplaceAllString(text, "steps=[...]")
	}
	return even(c.toFake(real)) == even(fake)
}

func isUUID(text string) bool { return len(text) == 36 && uuid.MatchString(text) }

// transient are the states in which a conductor works on a node.
var transient = strings.Split("verifying deploying cleaning inspecting deleting adopting rescuing unrescuing servicing", " ")

// busy reports whether an object is a node with which Ironic is not done.
func busy(object map[string]any) bool {
	state, _ := object["provision_state"].(string)
	return object["reservation"] != nil || object["target_power_state"] != nil || slices.Contains(transient, state) ||
		strings.Contains(state, "wait")
}

// answer decodes the body of an answer. Of an error, it returns the text.
func answer(body string) any {
	var value any
	decoder := json.NewDecoder(strings.NewReader(body))
	decoder.UseNumber() // 1.0 is another number than 1
	if err := decoder.Decode(&value); err != nil {
		return body
	}
	object, _ := value.(map[string]any)
	text, is := object["error_message"].(string)
	var inner map[string]any
	if !is || json.Unmarshal([]byte(text), &inner) != nil {
		return value
	}
	return map[string]any{"error": cmp.Or(inner["faultstring"], inner["description"])}
}

// words are the parts of paths that are no names.
var words = strings.Fields(`v1 nodes ports portgroups allocations allocation drivers conductors chassis deploy_templates runbooks
	inspection_rules states provision power boot_mode secure_boot raid console management boot_device supported indicators inject_nmi traits
	vifs bios firmware history inventory validate vmedia maintenance detail volume connectors targets vendor_passthru methods lookup
	heartbeat continue_inspection properties logical_disk_properties shards events`)

// template returns a path with {} in the place of names.
func template(path string) string {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	for i, part := range parts {
		if !slices.Contains(words, part) {
			parts[i] = "{}"
		}
	}
	return "/" + strings.Join(parts, "/")
}
