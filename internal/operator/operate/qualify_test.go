package operate_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/notes"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/operator/operate"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/ironictest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/sitetest"
)

// burnIn is a recipe that erases nothing.
var burnIn = notes.Recipe{
	Steps:      []ironic.CleanStep{{Interface: "deploy", Step: "burnin_cpu"}},
	Parameters: map[string]any{"agent_burnin_cpu_timeout": 60},
}

// hasPassed reports whether the machine of a node of a fake has passed its qualification.
func hasPassed(n fakeironic.Node) bool {
	extra, _ := n.Raw["extra"].(map[string]any)
	q := notes.QualificationOf(&ironic.Node{Extra: extra})
	return q != nil && !q.Passed.IsZero()
}

// qualified puts the note of a qualification on a node.
func qualified(note string) func(*ironic.Node) {
	return func(n *ironic.Node) { n.Extra[notes.KeyQualification] = json.RawMessage(note) }
}

// left puts the note of a killed metal qualify on a node.
func left(n *ironic.Node) {
	n.Extra[notes.KeyOperation] = map[string]any{"22222222-2222-4222-8222-222222222222": map[string]any{
		"command": "qualify", "by": "eve@desk", "since": now.Add(-50 * time.Hour).Format(time.RFC3339), "goal": "available",
	}}
}

func TestQualify_decides(t *testing.T) {
	t.Parallel()
	const steps = `"steps": [{"interface": "deploy", "step": "burnin_disk"}]`
	of, again := operate.Qualify(nil, burnIn), operate.Qualify(nil, notes.Recipe{})
	begun := qualified(`{"begun": "2026-11-24T03:00:00Z", ` + steps + `}`)
	for name, tt := range map[string]struct {
		op   operate.Operation
		node *ironic.Node
		want planned
	}{
		"manageable": {of, node("manageable"), planned{
			harm: operate.Restarts, says: "runs deploy.burnin_cpu on it, for which it restarts; retires it if it fails",
		}},
		"in the pool":                   {of, node("available"), planned{harm: operate.Erases, says: "; then makes it available again"}},
		"in the pool, without cleaning": {of, node("available", uncleaned), planned{harm: operate.Restarts, says: "available again"}},
		"by the steps of the note": {again, node("manageable", qualified(`{"passed": "2026-05-01T02:00:00Z", `+steps+`}`)), planned{
			harm: operate.Erases, says: "runs deploy.burnin_disk on it, for which it restarts, and which may erase its disks",
		}},
		"by a runbook": {operate.Qualify(nil, notes.Recipe{Runbook: "burn-in"}), node("manageable"), planned{
			harm: operate.Erases, says: "runbook burn-in",
		}},
		"never qualified":   {again, node("manageable"), planned{refused: true, says: "name --runbook or --steps"}},
		"retired":           {of, node("manageable", retired), planned{harm: operate.Restarts, says: "restarts"}},
		"after a failure":   {of, node("clean failed", maintained("", "clean failure")), planned{harm: operate.Restarts, says: "runs"}},
		"deployed":          {of, node("active"), planned{refused: true, says: "metal undeploy"}},
		"reserved":          {of, node("available", reserved), planned{refused: true, says: "metal release"}},
		"cleaned by others": {of, node("clean wait"), planned{refused: true, says: "in progress"}},
		"begun": {again, node("clean wait", begun), planned{
			harm: operate.Erases,
			says: "takes what has come of the qualification by deploy.burnin_disk, which began at 2026-11-24T03:00:00Z",
		}},
		"killed while it runs": {again, node("clean wait", begun, left), planned{harm: operate.Erases, says: "available again"}},
		"killed after the steps": {
			again, node("manageable", qualified(`{"passed": "2026-11-26T01:00:00Z"}`), left),
			planned{harm: operate.Erases, says: "makes it available again"},
		},
		"killed before its note goes": {
			again, node("available", qualified(`{"passed": "2026-11-26T01:00:00Z"}`), left),
			planned{says: "removes the note of metal qualify of eve@desk"},
		},
		"passed before the killed one": {of, node("available", qualified(`{"passed": "2026-11-01T01:00:00Z"}`), left), planned{
			harm: operate.Erases, says: "runs deploy.burnin_cpu",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tt.want.check(t, tt.op.Plan(tt.node, operate.Seen{Now: now}))
		})
	}
}

// A machine of the pool fails, is repaired, qualifies again by the same steps, and stays retired until the operator ends that.
func TestQualify_afterARepair(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake := &fakeironic.Server{StepTime: time.Minute}
		sitetest.AddBootable(t, fake, "node-000", sitetest.FromMedia)
		time.Sleep(time.Second)
		isBroken, ran := true, []any{}
		fake.Fail = func(n fakeironic.Node, _ string) string {
			info, _ := n.Raw["driver_info"].(map[string]any)
			if n.ProvisionState == "cleaning" && info["agent_burnin_cpu_timeout"] != nil {
				if ran = append(ran, info["agent_burnin_cpu_timeout"]); isBroken {
					return "Clean step deploy.burnin_cpu failed on node node-000. stress-ng (cpu) failed with error"
				}
			}
			return ""
		}
		site := sitetest.NewClient(fake).Site
		got := do(t.Context(), t, site, operate.Qualify(nil, burnIn), "node-000")
		n := nodeOf(t, fake)
		if got.Outcome != operate.Failed || !n.Retired || notes.QuarantineOf(n) == nil || notes.OperationOf(n) != nil {
			t.Fatalf("%s: %v; retired %t, extra %v", got.Outcome, got.Err, n.Retired, n.Extra)
		}
		isBroken = false
		got = do(t.Context(), t, site, operate.Qualify(nil, notes.Recipe{}), "node-000")
		n = nodeOf(t, fake)
		q := notes.QualificationOf(n)
		if got.Outcome != operate.Done || !strings.Contains(got.Note, "metal unretire node-000") || !n.Retired ||
			n.ProvisionState != "manageable" || q.Passed.IsZero() || len(ran) < 2 || slices.Contains(ran, nil) {
			t.Errorf("%s: %v, %q; %s, retired %t, %+v, ran %v", got.Outcome, got.Err, got.Note, n.ProvisionState, n.Retired, q, ran)
		}
		if n.DriverInfo["agent_burnin_cpu_timeout"] != nil {
			t.Error("the parameters are left")
		}
	})
}

// A member of a lessee may write notes. Such a note changes no key of driver_info but those of a burn-in.
func TestQualify_setsNoForgedParameters(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake := ironictest.Fleet(1)
		fake.Set("node-000", "provision_state", "manageable")
		fake.Set("node-000", "driver_info", map[string]any{"ipmi_address": "10.0.0.1", "ipmi_port": "623"})
		fake.Set("node-000", "extra", map[string]any{notes.KeyQualification: map[string]any{
			"begun": "2000-01-01T00:00:00Z", "steps": burnIn.Steps, "parameters": map[string]any{"ipmi_address": "evil", "ipmi_port": "1"},
		}})
		_ = do(t.Context(), t, sitetest.NewClient(fake).Site, operate.Qualify(nil, notes.Recipe{}), "node-000")
		if info := nodeOf(t, fake).DriverInfo; info["ipmi_address"] != "10.0.0.1" || info["ipmi_port"] != "623" {
			t.Errorf("driver_info is %v", info)
		}
	})
}
