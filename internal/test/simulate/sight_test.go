package simulate_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	uuids = regexp.MustCompile(`(?i)[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
	fleet = regexp.MustCompile(`node-\d+`)
	times = regexp.MustCompile(`\d{4}-\d\d-\d\dT[0-9:.]+(Z|\+00:00)?`)
)

// sight is what there is at a site, without what differs between two lives that do the same: a line for each attribute of an object.
type sight map[string]string

// collections are the lists of objects in Ironic, besides nodes.
var collections = map[string]string{
	"ports": "ports/detail", "portgroups": "portgroups/detail", "allocations": "allocations",
	"deploy_templates": "deploy_templates?detail=True",
	"runbooks":         "runbooks?detail=True", "inspection_rules": "inspection_rules?detail=True",
}

// see looks at everything at the site.
func (s *site) see(t *testing.T) sight {
	t.Helper()
	seen := sight{}
	reserved := 0
	for _, n := range s.fake.Nodes() {
		if n.ResourceClass == fleetClass { // any of them will do
			if n.InstanceUUID != "" {
				reserved++
			}
			continue
		}
		n.Raw["starts"], n.Raw["booted"], n.Raw["drive"] = s.fake.PowerCycles(n.UUID), s.fake.BootedISO(n.UUID), s.fake.Drive(n.UUID)
		n.Raw["reserved"], n.Raw["allocated"] = n.InstanceUUID != "", n.AllocationUUID != ""
		seen.add("node "+n.Name, n.Raw)
	}
	seen["fleet reserved"] = fmt.Sprint(reserved)
	for kind, path := range collections {
		status, answer := s.call(t, http.MethodGet, path, nil)
		all, _ := answer[kind].([]any)
		if status != http.StatusOK {
			continue // an older Ironic has none
		}
		for _, one := range all {
			object, _ := one.(object)
			key := kind
			for _, name := range []string{"name", "address", "description"} {
				if text, _ := object[name].(string); text != "" {
					key = kind + " " + text
					break
				}
			}
			seen.add(key, object)
		}
	}
	return seen
}

// unseen are attributes that say nothing about what there is.
var unseen = map[string]bool{
	"links": true, "uuid": true, "driver_internal_info": true, "reservation": true, "provision_updated_at": true, "updated_at": true,
	"created_at":            true,
	"inspection_started_at": true, "inspection_finished_at": true, "instance_uuid": true, "allocation_uuid": true, "chassis_uuid": true,
}

// add adds an object. Notes of the provider are no part of it.
func (s sight) add(key string, of object) {
	for name, value := range of {
		if inner, isObject := value.(object); isObject {
			inner = maps.Clone(inner)
			maps.DeleteFunc(inner, func(name string, _ any) bool { return strings.HasPrefix(name, "terraform_metal") })
			value = inner
		}
		text, _ := json.Marshal(value)
		if shown := unique(string(text)); !unseen[name] && shown != "null" && shown != "{}" && shown != "[]" {
			s[uuids.ReplaceAllString(key, "UUID")+" "+name] = shown
		}
	}
}

// unique replaces what differs between two lives that do the same.
func unique(text string) string {
	return fleet.ReplaceAllString(times.ReplaceAllString(uuids.ReplaceAllString(text, "UUID"), "TIME"), "NODE")
}

// differences describes how a sight differs from what was expected; "" if it does not.
func (s sight) differences(expected sight) string {
	var all []string
	for _, key := range slices.Sorted(maps.Keys(expected)) {
		if now := s[key]; now != expected[key] {
			all = append(all, fmt.Sprintf("%s is %s, not %s", key, orNothing(now), expected[key]))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(s)) {
		if _, known := expected[key]; !known {
			all = append(all, fmt.Sprintf("%s is %s, not unset", key, s[key]))
		}
	}
	return strings.Join(all, "; ")
}

func orNothing(text string) string {
	if text == "" {
		return "unset"
	}
	return text
}
