package main

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/terraform-provider-metal/terraform-provider-metal/cmd/metal/cli"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/ironictest"
)

// listedSite is a site with machines in all kinds of trouble, one of which an allocation has, and an allocation that has failed.
func listedSite(t *testing.T) *site {
	t.Helper()
	s := newSite(t, 12)
	s.ironic.StepTime, s.ironic.Username = 0, ""
	ironictest.AsOther(t, s.ironic, http.MethodPost, "allocations", map[string]any{
		"name": "web-3", "resource_class": "baremetal", "candidate_nodes": []string{name(10)},
	})
	ironictest.AsOther(t, s.ironic, http.MethodPost, "allocations", map[string]any{"name": "big-1", "resource_class": "huge"})
	s.ironic.Set(name(2), "maintenance", true)
	s.ironic.Set(name(2), "maintenance_reason", "fan 3 is broken, ticket 4711, and the new one comes on Friday, at last")
	s.ironic.Set(name(3), "provision_state", "deploy failed")
	s.ironic.Set(name(3), "last_error", "Deploy step deploy.write_image failed: Image failed to verify against checksum")
	s.ironic.Set(name(3), "instance_uuid", ironic.NewUUID())
	s.ironic.Set(name(4), "resource_class", "gpu")
	s.ironic.Set(name(4), "retired", true)
	return s
}

func TestList_tellsOfEachNodeInOneLine(t *testing.T) {
	t.Parallel()
	s := listedSite(t)
	s.ironic.ResetRequests()
	out := s.wants(t, cli.ExitDone, []string{"web-3", "maintenance: fan 3", "image-checksum", "retired"}, "list", "nodes")
	if n := len(s.ironic.Requests()); n > 3 { // the version, nodes, allocations
		t.Errorf("%d requests", n)
	}
	if strings.Contains(out, "HEALTH") {
		t.Errorf("health is shown, and Ironic tells none: %s", out)
	}
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if len(lines) != 13 || !strings.HasPrefix(lines[3], name(2)) || !strings.HasPrefix(lines[11], name(10)) {
		t.Errorf("%q", lines)
	}
	for _, line := range lines {
		if utf8.RuneCountInString(line) > 80 {
			t.Errorf("wider than 80 columns: %s", line)
		}
	}
	s.ironic.Set(name(4), "health", "Critical")
	s.wants(t, cli.ExitDone, []string{"HEALTH", "Critical"}, "list", "nodes")
}

// A list takes the selections of all commands, and all machines without one.
func TestList_selects(t *testing.T) {
	t.Parallel()
	s := listedSite(t)
	for line, want := range map[string]string{
		"nodes --resource-class gpu":                 name(4),
		"nodes --allocation web-3":                   name(10),
		"nodes --provision-state deploy\u00a0failed": name(3),
		"nodes " + name(7) + " " + name(1):           name(1) + " " + name(7),
		"nodes --all --output json":                  "",
		"allocations --resource-class huge":          "big-1",
		"allocations --name-regex ^web":              "web-3",
		"allocations":                                "big-1 web-3",
		"allocations web-3 big-1":                    "big-1 web-3",
	} {
		var args []string
		for _, word := range strings.Split("list "+line, " ") {
			args = append(args, strings.ReplaceAll(word, "\u00a0", " "))
		}
		if out := s.wants(t, cli.ExitDone, nil, args...); want != "" && firstWords(out) != want {
			t.Errorf("metal list %s: %s, want %s", line, firstWords(out), want)
		}
	}
	s.wants(t, cli.ExitNothing, []string{"no machine of"}, "list", "nodes", "--resource-class", "none")
	s.wants(t, cli.ExitNothing, []string{"Ironic has no node x"}, "list", "nodes", "x", name(1))
	s.wants(t, cli.ExitNothing, []string{"Ironic has no allocation x"}, "list", "allocations", "x")
	s.wants(t, cli.ExitNothing, []string{"no allocation of"}, "list", "allocations", "--owner", "nobody")
	s.wants(t, cli.ExitUsage, []string{"not both"}, "list", "allocations", "web-3", "--owner", "nobody")
	s.wants(t, cli.ExitUsage, []string{"--output is"}, "list", "nodes", "--output", "yaml")
	s.wants(t, cli.ExitUsage, []string{"--owner is empty"}, "list", "allocations", "--owner", "")
}

// firstWords returns the first word of each line but the heading.
func firstWords(table string) string {
	var all []string
	for _, line := range strings.Split(strings.TrimSpace(table), "\n")[1:] {
		all = append(all, strings.Fields(line)[0])
	}
	return strings.Join(all, " ")
}

func TestList_jsonHasWhatTheTableCuts(t *testing.T) {
	t.Parallel()
	s := listedSite(t)
	var nodes, allocations []map[string]any
	if err := json.Unmarshal([]byte(s.wants(t, cli.ExitDone, nil, "list", "nodes", "--output", "json")), &nodes); err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]any{
		"node_name": name(10), "allocation_name": "web-3", "resource_class": "baremetal", "provision_state": "available",
		"maintenance": false, "health": nil, "failure": nil,
	} {
		if got := nodes[10][key]; got != want {
			t.Errorf("%s: %v, want %v", key, got, want)
		}
	}
	if why, _ := nodes[3]["failure"].(map[string]any); why["reason"] != "image-checksum" || nodes[2]["maintenance_reason"] == nil {
		t.Errorf("%v", nodes[3])
	}
	out := s.wants(t, cli.ExitDone, nil, "list", "allocations", "--output", "json")
	if err := json.Unmarshal([]byte(out), &allocations); err != nil {
		t.Fatal(err)
	}
	if a := allocations[0]; a["state"] != "error" || a["node_name"] != nil || a["last_error"] == nil {
		t.Errorf("%v", a)
	}
	if a := allocations[1]; a["state"] != "active" || a["node_name"] != name(10) || a["node_id"] == nil {
		t.Errorf("%v", a)
	}
}
