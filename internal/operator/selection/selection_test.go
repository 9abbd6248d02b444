package selection_test

import (
	"fmt"
	"net/http/httptest"
	"regexp"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/operator/selection"
)

func TestSelection_describesItself(t *testing.T) {
	t.Parallel()
	s := selection.Selection{Class: "gpu", Owner: "team-a", Name: regexp.MustCompile("^rack1")}
	if got, want := s.String(), ", class gpu, owner team-a, name ^rack1"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestList_findsWhatIsSelected(t *testing.T) {
	t.Parallel()
	fake := &fakeironic.Server{}
	fake.AddFleet(20, "baremetal")
	fake.Set("node-003", "resource_class", "gpu")
	fake.Set("node-004", "provision_state", "active")
	server := httptest.NewServer(fake)
	t.Cleanup(server.Close)
	client := ironic.New(api.Config{Endpoint: server.URL, Auth: api.AuthNone}, ironic.Polls{})
	many := []string{}
	for i := 19; i >= 8; i-- {
		many = append(many, fmt.Sprintf("node-%03d", i))
	}
	for name, tt := range map[string]struct {
		selection selection.Selection
		want      []string
	}{
		"all": {
			selection.Selection{Name: regexp.MustCompile("node-00[0-2]")},
			[]string{"node-000", "node-001", "node-002"},
		},
		"class":            {selection.Selection{Class: "gpu"}, []string{"node-003"}},
		"state":            {selection.Selection{States: []string{"active"}}, []string{"node-004"}},
		"states and class": {selection.Selection{States: []string{"active", "manageable"}, Class: "gpu"}, nil},
		"one by one, in order": {
			selection.Selection{Nodes: []string{"node-007", "node-002", "node-007"}},
			[]string{"node-007", "node-002"},
		},
		"many, in order": {selection.Selection{Nodes: many}, many},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			listed, err := tt.selection.List(t.Context(), client, []string{"uuid"})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for i := range listed {
				got = append(got, listed[i].Name)
			}
			if fmt.Sprint(got) != fmt.Sprint(tt.want) {
				t.Errorf("%v, want %v", got, tt.want)
			}
		})
	}
	_, err := selection.Selection{Nodes: []string{"node-001", "x", "y"}}.List(t.Context(), client, nil)
	if !selection.IsNotFound(err) || err.Error() != "Ironic has no node x, y that you may see" {
		t.Errorf("missing nodes: %v", err)
	}
	if _, err = (selection.Selection{Allocations: []string{"web-3"}}).List(t.Context(), client, nil); !selection.IsNotFound(err) {
		t.Errorf("a missing allocation: %v", err)
	}
}
