package provider_test

import "testing"

// said plans a new resource, and returns what Terraform shows, also if the plan is refused.
func (s *session) said(kind string, config object) string {
	s.Helper()
	resp, err := s.server.PlanResourceChange(s.Context(), s.planRequest(kind, config, nil))
	if err != nil {
		s.Fatal(err)
	}
	return describe(resp.Diagnostics)
}

// A plan promises that an adoption touches nothing only if no host of the same run touches the machine before, also while the plan does
// not know which node that is.
func TestPlan_promisesNoAdoptionThatIsNotKept(t *testing.T) {
	t.Parallel()
	const refused, promised = "Adopted machine would be cleaned", "nothing is written to its disks, and it is not restarted"
	host := func(name, target string) object {
		return object{"name": name, "driver": "fake-hardware", "target_state": target, "resource_class": "c"}
	}
	inspected := host("a", "manageable")
	inspected["inspect"] = true
	open := host("a", "manageable")
	open["target_state"] = notKnown
	both := []object{host("a", "available"), host("b", "manageable")}
	for name, tt := range map[string]struct {
		hosts    []object
		node     any
		settings object
		says     string
	}{
		"a new host that is cleaned":           {[]object{host("a", "available")}, notKnown, nil, refused},
		"and another, named":                   {both, "a", nil, refused},
		"one is cleaned, and another is not":   {both, notKnown, nil, "unless it is one"},
		"a new host that stays manageable":     {[]object{host("a", "manageable")}, notKnown, nil, promised},
		"a new host that is inspected":         {[]object{inspected}, notKnown, nil, "restarts or configures host a before"},
		"what an allocation will have":         {[]object{host("a", "available")}, notKnown, object{"allocation_id": notKnown}, "unless it is one"},
		"a host whose target is not known yet": {[]object{open}, notKnown, nil, "unless it is one"},
		"a node of which this run has no host": {nil, notKnown, nil, promised},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := startSession(t, nil)
			for _, h := range tt.hosts {
				s.shown("metal_host", h, nil)
			}
			config := object{"node_id": tt.node, "adopt": true, "on_destroy": "forget"}
			text := s.said("metal_deployment", withAll(config, tt.settings))
			for _, phrase := range []string{refused, promised, tt.says} {
				mentions(t, name, text, phrase, phrase == tt.says)
			}
		})
	}
}

// A host in state that becomes available is cleaned before the deployment adopts it.
func TestPlan_adoptsNoHostThatLeavesForThePool(t *testing.T) {
	t.Parallel()
	s := startSession(t, nil)
	host := object{"name": "a", "driver": "fake-hardware", "target_state": "manageable"}
	made, said := s.apply("metal_host", host, nil)
	if failed(said) {
		t.Fatal(describe(said))
	}
	adoption := object{"node_id": s.text(made, "id"), "adopt": true, "on_destroy": "forget"}
	mentions(t, "a host that stays", s.shown("metal_deployment", adoption, nil), "Machine is adopted", true)
	host["target_state"] = "available"
	s.shown("metal_host", host, made)
	mentions(t, "a host that leaves", s.said("metal_deployment", adoption), "Adopted machine would be cleaned", true)
}
