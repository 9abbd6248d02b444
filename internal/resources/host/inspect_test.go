package host_test

import (
	"reflect"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

// recabled is inspect_triggers with a value.
func recabled(value string) string {
	return "inspect_triggers = { recabled = " + acctest.Quoted(value) + " }"
}

// Any change of inspect_triggers inspects again: human, saved and JSON plans show it. A removal does nothing.
func TestAccHost_inspectTriggersInspectAgain(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	w := acctest.NewWorkspace(t, hostConfig(s, recabled("2026-01")))
	w.Must(acctest.Apply()...)
	defer acctest.Destroy(t, s, w)
	id := site.Text(s.Node(s.Name("h"))["uuid"])
	site.WantVerbs(t, s, id, "manage") // a new host only records them
	acctest.NoChanges(t, w)

	for _, value := range []string{"2026-02", "2026-03"} {
		before := s.Node(id)["inspection_finished_at"]
		site.ForgetVerbs(s)
		w.Configure(hostConfig(s, recabled(value)))
		output, _ := w.Plan()
		acctest.Mention(t, output, `"recabled" = "2026-0`, `-> "`+value+`"`, "Inspection boots the machine", "Ironic inspects host "+
			s.Name("h")+" again")
		acctest.NeverMention(t, output, "Cleaning erases data")
		change := w.Save()[acctest.HostAddress]
		want := map[string]any{"recabled": value}
		if !reflect.DeepEqual(change.After["inspect_triggers"], want) || reflect.DeepEqual(change.Before["inspect_triggers"], want) ||
			change.Unknown["provision_state"] != true {
			t.Errorf("the saved plan has %+v", change)
		}
		w.Must("apply", "saved")
		site.WantVerbs(t, s, id, "inspect")
		if after := s.Node(id)["inspection_finished_at"]; after == nil || after == before {
			t.Errorf("the node was inspected at %v, before at %v", after, before)
		}
		acctest.NoChanges(t, w)
	}

	site.ForgetVerbs(s)
	w.Configure(hostConfig(s))
	w.Must(acctest.Apply()...)
	acctest.NoChanges(t, w)
	site.WantVerbs(t, s, id)
	if extra, _ := s.Node(id)["extra"].(map[string]any); extra["terraform_metal_inspection"] != nil {
		t.Errorf("the note of the inspection has stayed: %v", extra)
	}
	w.Configure(hostConfig(s, recabled("2026-03")))
	acctest.Mention(t, w.Must(acctest.Apply()...), "Inspection boots the machine") // adding them is a change
	site.WantVerbs(t, s, id, "inspect")
	acctest.NoChanges(t, w)
}

// A deployed, reserved or unreachable machine cannot be inspected: the plan says so, and changes nothing.
func TestAccHost_inspectTriggersAreRefused(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	allocation := "resource \"metal_allocation\" \"a\" {\n  candidate_nodes = [metal_host.h.id]\n  resource_class = " +
		acctest.Quoted(s.Class()) + "\n}\n"
	host := func(settings ...string) string {
		return hostConfig(s, append(settings, acctest.Target("available"), "resource_class = "+acctest.Quoted(s.Class()))...)
	}
	w := acctest.NewWorkspace(t, host(recabled("1"))+allocation)
	w.Must(acctest.Apply()...)
	defer acctest.Destroy(t, s, w)
	w.Configure(host(recabled("2")) + allocation)
	acctest.Fails(t, w, []string{"plan"}, "Host cannot be inspected now", "is reserved by", "Destroy its metal_allocation first")
	deployment := acctest.Deployment("metal_allocation.a.node_id", "allocation_id = metal_allocation.a.id", acctest.Image("v1"))
	w.Configure(host(recabled("1")) + allocation + deployment)
	w.Must(acctest.Apply()...)
	w.Configure(host(recabled("2")) + allocation + deployment)
	acctest.Fails(t, w, []string{"plan"}, "Host cannot be inspected now", `is in state "active"`, "Destroy its metal_deployment first")
	w.Configure(host() + allocation + deployment) // a removal is fine
	w.Must(acctest.Apply()...)
	acctest.NoChanges(t, w)
}
