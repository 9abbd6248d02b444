package fakeironic_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
)

// ask sends a request in an API version and returns the answer.
func ask(t *testing.T, s *fakeironic.Server, version, method, path, body string) (status int, answer string) {
	r := httptest.NewRequestWithContext(t.Context(), method, "http://ironic.example.com/v1/"+path, strings.NewReader(body))
	r.Header.Set("X-OpenStack-Ironic-API-Version", version)
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

// The answers are those of Ironic 39.0, unless the name says otherwise.
func TestSitePolicy_answersAsIronic(t *testing.T) {
	t.Parallel()
	const (
		template = `{"name": "CUSTOM_A", "steps": [{"interface": "raid", "step": "s", "args": {"password": "x", "l": [{"secret": "z"}]}, "priority": 90}]}`
		runbook  = `{"name": "a", "steps": [{"interface": "bios", "step": "s", "order": 1}]}`
		rule     = `{"sensitive": true, "conditions": [], "actions": [{"op": "fail", "args": {"msg": "x"}}]}`
	)
	for name, tt := range map[string]struct {
		highest, version, method, path, body string
		status                               int
		has                                  string
	}{
		"secrets in steps": {
			"1.115", "1.115", "POST", "deploy_templates", template, 201,
			`"args": {"l":[{"secret":"******"}],"password":"******"}`,
		},
		"secrets in lists on 21.4": {"1.82", "1.82", "POST", "deploy_templates", template, 201, `"secret":"z"`},
		"templates before 1.55":    {"1.115", "1.54", "GET", "deploy_templates", "", 404, "The API version does not allow deploy templates"},
		"a template before 1.55": {
			"1.115", "1.54", "POST", "deploy_templates", template, 405,
			"The API version does not allow deploy templates",
		},
		"runbooks before 1.92":     {"1.115", "1.91", "GET", "runbooks", "", 404, "The API version does not allow runbooks"},
		"runbooks on 21.4":         {"1.82", "1.82", "GET", "runbooks", "", 404, `\"code\": 404`},
		"a free name before 1.112": {"1.115", "1.111", "POST", "runbooks", runbook, 400, "'a' does not match '^CUSTOM_[A-Z0-9_]+$'"},
		"a free name":              {"1.115", "1.112", "POST", "runbooks", runbook, 201, `"traits": []`},
		"traits in a POST": {
			"1.115", "1.112", "POST", "runbooks", strings.Replace(runbook, "{", `{"traits": [], `, 1), 400,
			"'traits' was unexpected",
		},
		"a step of no interface": {
			"1.115", "1.112", "POST", "runbooks", strings.Replace(runbook, "bios", "dvd", 1), 400,
			"'dvd' is not one of ['vendor', 'power', 'management'",
		},
		"rules before 1.96": {"1.115", "1.95", "GET", "inspection_rules", "", 404, "The API version does not allow inspection rules"},
		"a sensitive rule":  {"1.115", "1.96", "POST", "inspection_rules", rule, 201, `"conditions": null`},
		"a rule without conditions": {
			"1.115", "1.96", "POST", "inspection_rules", strings.Replace(rule, `"conditions": [], `, "", 1),
			500, "'NoneType' object is not iterable",
		},
		"an action that is none": {
			"1.115", "1.96", "POST", "inspection_rules", strings.Replace(rule, "fail", "fial", 1), 400,
			"'fial' is not one of ['fail', 'log', ",
		},
		"an argument that is none": {
			"1.115", "1.96", "POST", "inspection_rules", strings.Replace(rule, "msg", "masg", 1), 500,
			"missing required argument(s): msg; unexpected argument(s): masg",
		},
		"a rule by another ref":        {"1.115", "1.96", "GET", "inspection_rules/a", "", 400, "Schema error: 'a' is not a 'uuid'"},
		"the document of the version":  {"1.115", "1.96", "GET", "", "", 200, `"inspection_rules"`},
		"the document of version 1.91": {"1.115", "1.91", "GET", "", "", 200, `"deploy_templates"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			status, answer := ask(t, &fakeironic.Server{MaxMicroversion: tt.highest}, tt.version, tt.method, tt.path, tt.body)
			if compact := strings.ReplaceAll(answer, ": ", ":"); status != tt.status ||
				!strings.Contains(compact, strings.ReplaceAll(tt.has, ": ", ":")) {
				t.Errorf("%d %s, want %d with %s", status, answer, tt.status, tt.has)
			}
		})
	}
}

func TestSitePolicy_ruleWithoutConditionsExists(t *testing.T) {
	t.Parallel()
	s := &fakeironic.Server{}
	ask(t, s, "1.96", http.MethodPost, "inspection_rules", `{"description": "left", "actions": [{"op": "fail", "args": {"msg": "x"}}]}`)
	if _, answer := ask(t, s, "1.96", http.MethodGet, "inspection_rules", ""); !strings.Contains(answer, "left") {
		t.Errorf("the list is %s", answer)
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
