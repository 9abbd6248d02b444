package operate_test

import (
	"strings"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/operator/operate"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/ironictest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/sitetest"
)

var now = time.Date(2026, 11, 26, 3, 0, 0, 0, time.UTC)

// node returns a node in a state, changed a day ago, with edits.
func node(state string, edits ...func(*ironic.Node)) *ironic.Node {
	n := &ironic.Node{}
	n.Name, n.ProvisionState, n.PowerState, n.Driver = "n", state, "power on", "redfish"
	n.ProvisionUpdatedAt, n.Extra = now.Add(-24*time.Hour), map[string]any{}
	for _, edit := range edits {
		edit(n)
	}
	return n
}

// reserved makes a node a reserved one.
func reserved(n *ironic.Node) { n.InstanceUUID = "11111111-1111-4111-8111-111111111111" }

// fan is an operation that puts machines into maintenance.
var fan = operate.Maintenance(machine.Maintenance{On: true, Reason: "bad fan"})

// maintained puts a node into maintenance.
func maintained(reason, fault string) func(*ironic.Node) {
	return func(n *ironic.Node) { n.Maintenance, n.MaintenanceReason, n.Fault = true, reason, fault }
}

// uncleaned switches automated cleaning of a node off.
func uncleaned(n *ironic.Node) { n.AutomatedClean = new(bool) }

// retired retires a node.
func retired(n *ironic.Node) { n.Retired = true }

// inspected says that a node was inspected so long ago.
func inspected(ago time.Duration) func(*ironic.Node) {
	return func(n *ironic.Node) { n.InspectionFinishedAt = new(now.Add(-ago)) }
}

// noted puts a note on a node that run has left so long ago.
func noted(key string, ago time.Duration) func(*ironic.Node) {
	const run = "22222222-2222-4222-8222-222222222222"
	since := now.Add(-ago).Format(time.RFC3339)
	return func(n *ironic.Node) {
		switch key {
		case "terraform_metal_turn":
			n.Extra[key] = map[string]any{"group": "web", "run": run, "since": since}
		case "terraform_metal_operation":
			n.Extra[key] = map[string]any{run: map[string]any{"command": "inspect", "by": "eve@desk", "since": since, "goal": "available"}}
		default:
			n.Extra[key] = map[string]any{run: map[string]any{"since": since}}
		}
	}
}

func TestPlan_saysWhatHappens(t *testing.T) {
	t.Parallel()
	steps := ironic.Order{Steps: []ironic.CleanStep{{Interface: "bios", Step: "factory_reset"}}}
	wipes := ironic.Order{Steps: []ironic.CleanStep{{Interface: "deploy", Step: "erase_devices"}}}
	off, inspect, abort := operate.Power(machine.ActionOff), operate.Inspect(nil), operate.Abort()
	keep, force, dead := operate.Delete(nil, false), operate.Delete(nil, true), maintained("dead", "")
	on := func(version string) operate.Operation {
		op := operate.Abort()
		op.Has, _ = api.ParseMicroversion(version)
		return op
	}
	for name, tt := range map[string]struct {
		op      operate.Operation
		node    *ironic.Node
		harm    operate.Harm
		refused string
		does    string
		nothing bool
	}{
		"on, is on":               {operate.Power(machine.ActionOn), node("active"), operate.Harmless, "", "", true},
		"off, free":               {off, node("available"), operate.Restarts, "", "cuts its power", false},
		"off, deployed":           {off, node("active"), operate.Cuts, "", "cuts its power", false},
		"off, reserved":           {off, node("available", reserved), operate.Cuts, "", "cuts its power", false},
		"off, while Ironic works": {off, node("cleaning"), operate.Harmless, "operation on it is in progress", "", false},
		"manage, in the pool":     {operate.Manage(), node("available"), operate.Harmless, "", "makes it manageable", false},
		"manage, enrolled":        {operate.Manage(), node("enroll"), operate.Harmless, "", "makes it manageable", false},
		"manage, manageable":      {operate.Manage(), node("manageable"), operate.Harmless, "", "", true},
		"manage, deployed":        {operate.Manage(), node("active"), operate.Harmless, "metal undeploy", "", false},
		"manage, reserved":        {operate.Manage(), node("available", reserved), operate.Harmless, "metal release", "", false},
		"manage, while Ironic works": {
			operate.Manage(), node("cleaning"), operate.Harmless,
			"operation on it is in progress", "", false,
		},
		"provide, manageable": {operate.Provide(nil), node("manageable"), operate.Erases, "", "erases its disks", false},
		"provide, without cleaning": {
			operate.Provide(nil), node("manageable", uncleaned), operate.Harmless, "",
			"without a cleaning", false,
		},
		"provide, in the pool":   {operate.Provide(nil), node("available", reserved), operate.Erases, "", "", true},
		"provide, being cleaned": {operate.Provide(nil), node("cleaning"), operate.Erases, "", "erases its disks", false},
		"provide, retired": {
			operate.Provide(nil), node("manageable", retired), operate.Erases,
			"metal unretire", "", false,
		},
		"provide, deployed":    {operate.Provide(nil), node("deploy failed"), operate.Erases, "metal undeploy", "", false},
		"inspect, in the pool": {inspect, node("available"), operate.Erases, "", "erases its disks", false},
		"inspect, in the pool, without cleaning": {
			inspect, node("available", uncleaned), operate.Restarts,
			"", "available again", false,
		},
		"inspect, manageable": {inspect, node("manageable"), operate.Restarts, "", "leaves it manageable", false},
		"inspect, after a killed one": {
			inspect, node("manageable", noted("terraform_metal_operation", time.Hour)), operate.Erases,
			"", "available again", false,
		},
		"inspect, after a killed one that has inspected": {
			inspect, node("available", noted("terraform_metal_operation", time.Hour), inspected(time.Minute)), operate.Harmless,
			"", "removes the note of metal inspect of eve@desk", false,
		},
		"inspect, after a killed one, inspected before": {
			inspect, node("available", noted("terraform_metal_operation", time.Hour), inspected(2*time.Hour)), operate.Erases,
			"", "available again", false,
		},
		"inspect, a note of a time to come": {
			inspect, node("manageable", noted("terraform_metal_operation", -time.Hour)), operate.Restarts,
			"", "leaves it manageable", false,
		},
		"inspect, long after a killed one": {
			inspect, node("manageable", noted("terraform_metal_operation", 25*time.Hour)),
			operate.Restarts, "", "leaves it manageable", false,
		},
		"inspect, deployed": {inspect, node("active"), operate.Restarts, "metal undeploy", "", false},
		"inspect, reserved": {inspect, node("available", reserved), operate.Restarts, "metal release", "", false},
		"clean": {
			operate.Clean(nil, steps, false), node("manageable"), operate.Restarts, "",
			"runs bios.factory_reset", false,
		},
		"clean, in the pool": {
			operate.Clean(nil, steps, false), node("available"), operate.Restarts,
			"only manageable machines", "", false,
		},
		"clean, erases": {
			operate.Clean(nil, wipes, true), node("manageable"), operate.Erases, "",
			"may erase its disks", false,
		},
		"clean, must not erase": {operate.Clean(nil, wipes, false), node("manageable"), operate.Restarts, "--erase", "", false},
		"service":               {operate.Service(steps), node("active"), operate.Cuts, "", "its system restarts", false},
		"service, erases":       {operate.Service(wipes), node("active"), operate.Cuts, "would erase its disks", "", false},
		"service, in service":   {operate.Service(steps), node("servicing"), operate.Cuts, "operation on it is in progress", "", false},
		"service, free":         {operate.Service(steps), node("manageable"), operate.Cuts, "metal clean", "", false},
		"abort, while a run waits": {
			abort, node("wait call-back", reserved, noted("terraform_metal_reservation", time.Minute)),
			operate.Cuts, "", "ends its operation", false,
		},
		"abort, nothing":                {abort, node("active"), operate.Harmless, "there is none", "", false},
		"unhold":                        {operate.Unhold(), node("service hold"), operate.Harmless, "", "continues", false},
		"unhold, being deployed":        {operate.Unhold(), node("deploy hold"), operate.Erases, "", "may write its disks", false},
		"unhold, being cleaned":         {operate.Unhold(), node("clean hold"), operate.Erases, "", "may erase its disks", false},
		"abort, failed service":         {abort, node("service failed"), operate.Cuts, "", "active again", false},
		"abort, Ironic of today":        {on("1.110"), node("wait call-back"), operate.Cuts, "", "ends its operation", false},
		"abort, older Ironic":           {on("1.82"), node("wait call-back"), operate.Restarts, "API 1.110", "", false},
		"abort, older Ironic, cleaning": {on("1.82"), node("clean wait"), operate.Restarts, "", "ends its operation", false},
		"nmi, deployed":                 {operate.NMI(), node("active"), operate.Cuts, "", "interrupts its system", false},
		"media, deployed": {
			operate.Media(ironic.DeviceCDROM, "http://i"), node("active"), operate.Restarts, "",
			"replaces", false,
		},
		"boot device, free": {
			operate.BootDevice("pxe", true), node("manageable"), operate.Harmless, "",
			"from now on", false,
		},
		"retire, in the pool": {
			operate.Retire("old"), node("available"), operate.Restarts, "",
			"takes it out of the pool and retires it", false,
		},
		"retire, reserved in the pool": {
			operate.Retire("old"), node("available", reserved), operate.Harmless,
			"metal release", "", false,
		},
		"delete, free":                   {keep, node("enroll"), operate.Cuts, "", "keep their data", false},
		"delete, in use":                 {keep, node("active", reserved), 0, "metal undeploy --release n", "", false},
		"delete, reserved":               {keep, node("available", reserved), 0, "First run: metal release", "", false},
		"delete, in use and maintenance": {keep, node("active", dead), 0, "it is in use", "", false},
		"delete, dead":                   {force, node("active", dead), operate.Cuts, "", "calls it active", false},
		"delete, dead, no maintenance":   {force, node("active", reserved), 0, "metal maintenance on", "", false},
		"delete, protected": {force, node("active", dead, func(n *ironic.Node) {
			n.Protected = true
		}), 0, "protected", "", false},
		"delete, being cleaned":          {keep, node("cleaning"), 0, "operation on it is in progress", "", false},
		"delete, not cleaned":            {keep, node("clean failed"), 0, "metal manage n", "", false},
		"delete, broken":                 {keep, node("clean failed", dead), operate.Cuts, "", "deletes", false},
		"unretire, not retired":          {operate.Unretire(), node("manageable"), operate.Harmless, "", "", true},
		"maintenance on":                 {fan, node("active"), operate.Harmless, "", "puts it into maintenance", false},
		"maintenance on, has the reason": {fan, node("active", maintained("bad fan", "")), operate.Harmless, "", "", true},
		"maintenance on, other reason":   {fan, node("active", maintained("TICKET-7", "")), operate.Restarts, "", "TICKET-7", false},
		"maintenance on, set by OneView": {
			fan, node("manageable", maintained("node in use by OneView", "")), operate.Harmless,
			"OneView user", "", false,
		},
		"maintenance on, set by a change": {
			fan, node("active", maintained(machine.ReasonChanging, "")), operate.Harmless,
			"run of Terraform", "", false,
		},
		"maintenance on, with a fault": {
			fan, node("active", maintained("bad fan", "power failure")), operate.Harmless, "",
			"puts it into maintenance", false,
		},
		"maintenance off, set by OneView": {operate.Maintenance(machine.Maintenance{}), node("manageable", func(n *ironic.Node) {
			n.Maintenance, n.MaintenanceReason = true, "node in use by OneView"
			n.DriverInfo = map[string]any{"oneview_out_of_service": "since " + now.Format(time.RFC3339)}
		}), operate.Harmless, "metal oneview sync", "", false},
		"maintenance off, set by others in the name of OneView": {
			operate.Maintenance(machine.Maintenance{}), node("manageable", maintained("node in use by OneView", "")), operate.Harmless, "",
			"ends its maintenance", false,
		},
		"maintenance off, set by a change": {operate.Maintenance(machine.Maintenance{}), node("active", func(n *ironic.Node) {
			n.Maintenance, n.MaintenanceReason = true, machine.ReasonChanging
		}), operate.Restarts, "", "a run of Terraform", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := tt.op.Plan(tt.node, operate.Seen{Now: now})
			if (got.Refused != "") != (tt.refused != "") || !strings.Contains(got.Refused, tt.refused) {
				t.Errorf("refused: %q, want %q", got.Refused, tt.refused)
			}
			if got.Nothing != tt.nothing || got.Refused == "" && got.Harm != tt.harm || !strings.Contains(got.Does, tt.does) {
				t.Errorf("got %+v, want harm %d, nothing %t, does %q", got, tt.harm, tt.nothing, tt.does)
			}
		})
	}
}

// A note counts while its writer may be alive. Then the operator must type the name of the machine.
func TestPlan_saysWhoMayBeAtWork(t *testing.T) {
	t.Parallel()
	const creation, reservation, turn, operation = "terraform_metal_creation", "terraform_metal_reservation", "terraform_metal_turn",
		"terraform_metal_operation"
	const run = "run 22222222-2222-4222-8222-222222222222, "
	on := operate.Power(machine.ActionOn)
	changed := func(n *ironic.Node) { n.ProvisionUpdatedAt = now.Add(-time.Minute) }
	isOff := func(n *ironic.Node) { n.PowerState = "power off" }
	for name, tt := range map[string]struct {
		op   operate.Operation
		node *ironic.Node
		live bool // a lock record names the run
		want string
	}{
		"a run creates":                   {on, node("active", isOff, noted(reservation, time.Minute)), false, run + "which began at"},
		"a run creates a host":            {on, node("manageable", isOff, noted(creation, time.Minute)), false, run + "which began at"},
		"a run was killed":                {on, node("active", isOff, noted(reservation, 2*time.Hour)), false, ""},
		"a run was killed, state changes": {on, node("active", isOff, changed, noted(reservation, 2*time.Hour)), false, ""},
		"a run waits for a slot":          {on, node("available", isOff, noted(reservation, 30*time.Hour)), true, run},
		"a run deploys": {
			operate.Undeploy(nil, false),
			node("wait call-back", reserved, changed, noted(reservation, 2*time.Hour)), false, run,
		},
		"a member has its turn": {
			on, node("active", isOff, noted(turn, time.Minute)), false,
			run + "whose turn in group web began at",
		},
		"a member has a long turn": {on, node("active", isOff, noted(turn, 2*time.Hour)), true, run},
		"a turn was killed":        {on, node("active", isOff, noted(turn, 2*time.Hour)), false, ""},
		"another command": {
			on, node("manageable", isOff, noted(operation, time.Minute)), false,
			"metal inspect of eve@desk, which began at",
		},
		"another command waits": {
			on, node("available", isOff, noted(operation, 3*time.Hour)), true,
			"metal inspect of eve@desk",
		},
		"another command was killed": {on, node("manageable", isOff, noted(operation, 2*time.Hour)), false, ""},
		"another command is over":    {on, node("available", isOff, changed, noted(operation, 2*time.Minute)), false, ""},
		"the same command":           {operate.Inspect(nil), node("manageable", noted(operation, time.Minute)), false, ""},
		"the same command waits": {
			operate.Inspect(nil), node("available", noted(operation, time.Minute)), true,
			"metal inspect of eve@desk",
		},
		"what ends the wait of a run":      {operate.Abort(), node("wait call-back", noted(reservation, time.Minute)), false, ""},
		"maintenance, while a run creates": {fan, node("active", noted(reservation, time.Minute)), false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			alive := map[string]bool{"22222222-2222-4222-8222-222222222222": tt.live}
			got := tt.op.Plan(tt.node, operate.Seen{Now: now, Alive: alive})
			if got.Refused != "" || (got.AtWork != "") != (tt.want != "") || !strings.HasPrefix(got.AtWork, tt.want) {
				t.Errorf("%+v, want %q", got, tt.want)
			}
			if tt.want != "" && (got.Harm < operate.Cuts || !strings.HasSuffix(got.Does, got.AtWork+", may be at work on it")) {
				t.Errorf("nobody is asked for the name: %+v", got)
			}
		})
	}
}

// Ironic ends a maintenance with a fault by itself, so the command replaces it.
func TestMaintenance_outlastsAFault(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake := ironictest.Fleet(1)
		fake.Set("node-000", "maintenance", true)
		fake.Set("node-000", "maintenance_reason", "During sync_power_state, max retries exceeded")
		fake.Set("node-000", "fault", "power failure")
		if got := do(t.Context(), t, sitetest.NewClient(fake).Site, fan, "node-000"); got.Outcome != operate.Done {
			t.Fatalf("%s: %v", got.Outcome, got.Err)
		}
		if n := ironictest.NodeOf(t, fake, "node-000"); n.Raw["maintenance"] != true || n.Raw["maintenance_reason"] != "bad fan" ||
			n.Raw["fault"] != nil {
			t.Errorf("maintenance %v, reason %v, fault %v", n.Raw["maintenance"], n.Raw["maintenance_reason"], n.Raw["fault"])
		}
	})
}

// changedAt is driver_internal_info of a node whose power was changed at an hour.
func changedAt(hour string) map[string]any {
	return map[string]any{"last_power_state_change": "2026-11-26T" + hour + ":00:00.000000"}
}

// What was not confirmed is not done to a machine that has changed since the question, also if there was no question about it then.
func TestRun_doesOnlyWhatWasConfirmed(t *testing.T) {
	t.Parallel()
	off, deployed := operate.Power(machine.ActionOff), map[string]any{
		"provision_state": "active", "power_state": "power on",
		"instance_uuid": ironic.NewUUID(),
	}
	erase := operate.Undeploy(nil, false)
	for name, tt := range map[string]struct {
		op      operate.Operation
		then    map[string]any // when the operator was asked
		now     map[string]any
		refused string
	}{
		"free, now reserved": {
			off,
			map[string]any{"power_state": "power on"},
			map[string]any{"instance_uuid": ironic.NewUUID()},
			"which was not confirmed",
		},
		"off, now on and deployed":        {off, map[string]any{"power_state": "power off"}, deployed, "which was not confirmed"},
		"a run was at work, now deployed": {off, map[string]any{"provision_state": "cleaning"}, deployed, "which was not confirmed"},
		"stays out of the pool, now in it": {
			operate.Inspect(nil),
			map[string]any{
				"provision_state": "manageable",
				"power_state":     "power on",
			},
			map[string]any{"provision_state": "available"},
			"makes it available again, for which Ironic erases its disks unless automated cleaning is off, which was not confirmed",
		},
		"ran, now in rescue": {off, deployed, map[string]any{"provision_state": "rescue"}, `it is in state "rescue"`},
		"ran, now in maintenance": {
			erase, deployed,
			map[string]any{"maintenance": true, "maintenance_reason": "disk is read out"},
			"it is in maintenance (disk is read out)",
		},
		"restarted by another": {
			operate.Power(machine.ActionReboot),
			map[string]any{"power_state": "power on", "driver_internal_info": changedAt("10")},
			map[string]any{"driver_internal_info": changedAt("11")},
			"it may have been restarted already",
		},
		"was off, now on": {
			operate.Provide(nil),
			map[string]any{"provision_state": "manageable", "power_state": "power off"},
			map[string]any{"power_state": "power on"},
			"it is on, and was off",
		},
		"another reservation": {erase, deployed, map[string]any{"instance_uuid": ironic.NewUUID()}, "another reservation"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ironictest.InVirtualTime(t, func(t *testing.T) {
				fake := ironictest.Fleet(1)
				set := func(fields map[string]any) {
					for field, value := range fields {
						fake.Set("node-000", field, value)
					}
				}
				set(tt.then)
				client := sitetest.NewClient(fake)
				tasks := operate.Tasks(tt.op, []ironic.Node{*nodeOf(t, fake)}, operate.Seen{Now: client.Ironic.ServerNow()})
				set(tt.now)
				fake.ResetRequests()
				runner := &operate.Runner{Site: client.Site, Parallel: 1}
				got := runner.Run(t.Context(), tt.op, tasks)[0]
				if got.Outcome != operate.Refused || !strings.Contains(got.Err.Error(), tt.refused) {
					t.Errorf("%s: %v, want refused: %s", got.Outcome, got.Err, tt.refused)
				}
				if is := ironictest.NodeOf(t, fake, "node-000").PowerState; is != "power on" {
					t.Errorf("the machine is %s", is)
				}
				for _, r := range fake.Requests() {
					if r.Method != "GET" {
						t.Errorf("%s %s was sent", r.Method, r.Path)
					}
				}
			})
		})
	}
}
