package fakeironic_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
)

func TestSitePolicy_ruleWithoutConditionsExists(t *testing.T) {
	t.Parallel()
	a := newAPI(t, &fakeironic.Server{})
	a.do(http.MethodPost, "/v1/inspection_rules", `{"description": "left", "actions": [{"op": "fail", "args": {"msg": "x"}}]}`)
	if got := a.do(http.MethodGet, "/v1/inspection_rules", nil); !strings.Contains(got.text, "left") {
		t.Errorf("the list is %s", got.text)
	}
}

// The answers are read from the source of Ironic 39.0.
func TestRunbook_runsOnNodesWithItsTraits(t *testing.T) {
	t.Parallel()
	fake := &fakeironic.Server{}
	a := newAPI(t, fake)
	uuid := a.node("n", nil)
	fake.Set(uuid, "provision_state", "active")
	steps := []any{
		map[string]any{"interface": "bios", "step": "unknown", "args": map[string]any{}, "order": 2},
		map[string]any{"interface": "vendor", "step": "trigger_servicewait", "args": map[string]any{}, "order": 1},
	}
	runbook := uuidOf(t, a.must(http.StatusCreated, http.MethodPost, "/v1/runbooks",
		map[string]any{"name": "CUSTOM_A", "steps": steps[1:]}))
	order := map[string]any{"target": "service", "runbook": "CUSTOM_A"}
	refused := func(a *api, text string, body map[string]any) {
		t.Helper()
		a.refused(http.StatusBadRequest, text, http.MethodPut, provisionPath(uuid), body)
	}
	refused(a, "Runbook "+runbook+" has no traits configured. Please ask an administrator to add traits to the runbook.", order)
	refused(a.at("1.111"), "This runbook has not been approved for use on this node "+uuid+". Please ask an administrator to add it to "+
		"your node traits.", order)
	a.must(http.StatusNoContent, http.MethodPut, "/v1/runbooks/"+runbook+"/traits", map[string]any{"traits": []any{"CUSTOM_B"}})
	refused(a, "This runbook has not been approved for use on this node "+uuid+". The node does not have any of the runbook's traits "+
		"['CUSTOM_B']. Please ask an administrator to add a matching trait to your node.", order)
	a.at("1.91").refused(http.StatusNotAcceptable, "Request not acceptable.", http.MethodPut, provisionPath(uuid), order)
	a.refused(http.StatusNotFound, "Runbook none could not be found.", http.MethodPut, provisionPath(uuid),
		map[string]any{"target": "service", "runbook": "none"})
	a.must(http.StatusNoContent, http.MethodPut, "/v1/nodes/"+uuid+"/traits/CUSTOM_B", nil)
	refused(a, "Please provide either \"service_steps\" or a runbook, but not both.",
		map[string]any{"target": "service", "runbook": "CUSTOM_A", "service_steps": steps[:1]})
	a.must(http.StatusAccepted, http.MethodPut, provisionPath(uuid), order)
	a.state(uuid, "service wait")
}
