// Package seed reads the nodes, ports and allocations of a site, as clients of Ironic print them, and makes of them what an Ironic has that
// was started anew: no operation is in progress, and no node is locked. It is pure: it reads no file, and makes no request.
package seed

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic/api"
)

// Seed is what a site has. Each record has the attributes of the API by name.
type Seed struct {
	Nodes, Ports, Allocations []map[string]any

	// Notes say what of the records is not as it was read.
	Notes []string
}

// Read adds the records of a JSON document: one record, a list of them, or an object with lists of them, such as {"nodes": [...]}. It
// accepts the answers of Ironic's API, and what the baremetal command prints with -f json, also its column titles. Errors begin with the
// name.
func (s *Seed) Read(name string, document []byte) error {
	decoder := json.NewDecoder(bytes.NewReader(bytes.TrimPrefix(document, []byte("\ufeff")))) // Windows begins files with this mark
	for more := true; more; more = decoder.More() {
		var text json.RawMessage
		var value any
		err := decoder.Decode(&text)
		if err == nil {
			err = api.Decode(text, &value)
		}
		if err != nil {
			return fmt.Errorf("%s is not JSON: %w; write it with: baremetal node list --long -f json", name, err)
		}
		if err := s.add(name, value); err != nil {
			return err
		}
	}
	return nil
}

// add adds a record, or those of a list or an object with lists.
func (s *Seed) add(name string, value any) error {
	switch value := value.(type) {
	case []any:
		for i, item := range value {
			record, isObject := item.(map[string]any)
			if !isObject {
				return fmt.Errorf("%s: item %d of the list is not an object", name, i+1)
			}
			if err := s.add(name, record); err != nil {
				return err
			}
		}
		return nil
	case map[string]any:
		if lists := listsOf(value); lists != nil {
			if value["next"] != nil {
				s.note("%s is the first page of a longer list: baremetal node list --long --limit 0 -f json lists all", name)
			}
			return s.add(name, lists)
		}
		return s.sort(name, byAttribute(value))
	}
	return fmt.Errorf("%s has neither an object nor a list", name)
}

// listsOf joins the lists of an object such as {"nodes": [...], "ports": [...]}; nil if the object is a record.
func listsOf(object map[string]any) (all []any) {
	if object["uuid"] != nil || object["name"] != nil || object["driver"] != nil {
		return nil // a node of GET /v1/nodes/detail has ports, too
	}
	for _, kind := range []string{"nodes", "ports", "allocations"} {
		if list, given := object[kind].([]any); given {
			all = append(append([]any{}, all...), list...)
		}
	}
	return all
}

// titles are the column titles of the baremetal command that are not the attribute in other letters.
var titles = map[string]string{
	"Provisioning State": "provision_state", "Current RAID configuration": "raid_config", "Target RAID configuration": "target_raid_config",
	"PXE boot enabled": "pxe_enabled", "Is Smart NIC port": "is_smartnic",
}

// byAttribute returns a record with attributes in the place of column titles, and without those that are empty: the baremetal command
// prints an empty text for an attribute of any type that the server does not have.
func byAttribute(record map[string]any) map[string]any {
	out := map[string]any{}
	for key, value := range record {
		if value == "" {
			continue
		}
		attribute, special := titles[key]
		if !special {
			attribute = strings.ReplaceAll(strings.ToLower(key), " ", "_")
		}
		out[attribute] = value
	}
	return out
}

// sort adds a record to its kind. Ports in a node become records of their own.
func (s *Seed) sort(name string, record map[string]any) error {
	has := func(attribute string) bool { _, given := record[attribute]; return given }
	switch {
	case has("address") && !has("driver"):
		s.Ports = append(s.Ports, record)
	case has("candidate_nodes") || has("state") && !has("provision_state"):
		s.Allocations = append(s.Allocations, record)
	case !has("uuid") && !has("name"):
		return fmt.Errorf("%s: a record with %s has neither a uuid nor a name: is it a node of Ironic?", name,
			strings.Join(keysOf(record), ", "))
	default:
		if api.Text(record["uuid"]) == "" {
			record["uuid"] = api.NewUUID()
		}
		ports, _ := record["ports"].([]any)
		for _, item := range ports {
			if port := byAttribute(api.Object(item)); port["address"] != nil { // the API has links to ports in this place
				port["node_uuid"] = record["uuid"]
				s.Ports = append(s.Ports, port)
			}
		}
		s.Nodes = append(s.Nodes, record)
	}
	return nil
}

// keysOf returns some keys of a record, for a message.
func keysOf(record map[string]any) []string {
	keys := slices.Sorted(maps.Keys(record))
	if len(keys) == 0 {
		return []string{"no attribute"}
	}
	return keys[:min(3, len(keys))]
}

func (s *Seed) note(format string, args ...any) {
	s.Notes = append(s.Notes, fmt.Sprintf(format, args...))
}

// label names a record in a message.
func label(record map[string]any) string {
	for _, key := range []string{"name", "address", "uuid"} {
		if text := api.Text(record[key]); text != "" {
			return text
		}
	}
	return "without a name"
}
