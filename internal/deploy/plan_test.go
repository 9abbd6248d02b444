package deploy_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/deploy"
)

// The tables: what is wished | what is seen | what happens | what the plan says; "!" refuses | rebuilds/restarts
//
// A setting that a row does not name is the one of the state, which is above the table. "?" is a value that is known only during the apply,
// "-" is none; a step with "?" may be taken. The machine is active and on, unless the row says otherwise. (wipe) and (restart) are what a
// step costs.

// A deployment that runs an image.
func TestDecide_image(t *testing.T) {
	t.Parallel()
	decideAll(t, "image=a, config_drive=d, rebuild_triggers=1, restart_triggers=1", `
the same | active | - | - | 0/0
image=b | active | rebuild (wipe) | Rebuild wipes the root disk | 1/0
config_drive=e | active | rebuild (wipe) | Rebuild wipes the root disk | 1/0
traits=CUSTOM_A | active | rebuild (wipe) | Rebuild wipes the root disk | 1/0
image=? | active | rebuild (wipe)? | Rebuild wipes the root disk | ?/0
rebuild_triggers=2 | active | rebuild (wipe) | Rebuild wipes the root disk | 1/0
rebuild_triggers=? | active | rebuild (wipe)? | Rebuild wipes the root disk | ?/0
image=b, on_change=ignore | active | - | - | 0/0
image=b, on_change=ignore, rebuild_triggers=2 | active | rebuild (wipe) | Rebuild wipes the root disk | 1/0
rebuild_triggers=2, on_change=replace | active | rebuild (wipe) | Rebuild wipes the root disk | 1/0
rebuild_triggers=-, restart_triggers=- | active | - | - | 0/0
image=b, on_change=ignore, rebuild_triggers=? | active | rebuild (wipe)? | !Value must be known during plan, Rebuild wipes the root disk | ?/0
config_drive=-, on_change=ignore | active | - | Change without effect | 0/0
image=b, on_change=? | active | - | !Value must be known during plan | 0/0
restart_triggers=2 | active | restart (restart) | Machine is restarted | 0/1
restart_triggers=? | active | restart (restart)? | Machine is restarted | 0/?
restart_triggers=2 | off | restart (restart) | Machine is restarted | 0/1
restart_triggers=2 | another run has restarted for 2 | - | Restart of an earlier run is recorded | 0/0
restart_triggers=2 | off, another run has restarted for 2 | - | Restart of an earlier run is recorded | 0/0
restart_triggers=3 | another run has restarted for 2 | restart (restart) | Machine is restarted | 0/1
restart_triggers=2 | this run has restarted for 2 | restart (restart) | Machine is restarted | 0/1
restart_triggers=2, image=b | another run has restarted for 2 | rebuild (wipe) | Rebuild wipes the root disk | 1/0
the same | another run has restarted for 2 | - | - | 0/0
restart_triggers=2, power_state=off | active | power-off (restart) | Power is switched | 0/0
restart_triggers=2, power_state=off | off | - | - | 0/0
restart_triggers=2, image=b | active | rebuild (wipe) | Rebuild wipes the root disk | 1/0
restart_triggers=2, image=? | active | rebuild (wipe)?, restart (restart)? | Rebuild wipes the root disk, Machine is restarted | ?/?
power_state=off | active | power-off (restart) | Power is switched | 0/0
power_state=on | off | power-on | Power is switched | 0/0
power_state=off | off | - | - | 0/0
power_state=off, image=b | active | rebuild (wipe), power-off (restart) | Rebuild wipes the root disk, Power is switched | 1/0
power_state=off, image=b | off | rebuild (wipe), power-off (restart) | Rebuild wipes the root disk | 1/0
power_state=on, image=b | active | rebuild (wipe), power-on | Rebuild wipes the root disk | 1/0
vifs=p1 | active | connect | - | 0/0
vifs=p1, image=b | active | rebuild (wipe) | Rebuild wipes the root disk | 1/0
vifs=? | active | connect? | - | 0/0
instance_name=web | active | name | - | 0/0
instance_name=? | active | name? | - | 0/0
instance_name=web, image=b | active | rebuild (wipe) | Rebuild wipes the root disk | 1/0
protected=true | active | protect | - | 0/0
protected=true | protected | - | - | 0/0
protected=false | protected | unprotect | - | 0/0
protected=false, image=b | protected | unprotect, rebuild (wipe) | Rebuild wipes the root disk | 1/0
protected=false, image=b | active | unprotect, rebuild (wipe) | Rebuild wipes the root disk | 1/0
protected=true, image=b | active | rebuild (wipe), protect | Rebuild wipes the root disk | 1/0
image=b | protected | rebuild (wipe) | Rebuild wipes the root disk, !Machine is protected | 1/0
image=? | protected | rebuild (wipe)? | Rebuild wipes the root disk | ?/0
restart_triggers=2 | protected | restart (restart) | Machine is restarted | 0/1
`)
}

// An earlier run was killed, or has failed.
func TestDecide_unfinishedDeployment(t *testing.T) {
	t.Parallel()
	decideAll(t, "image=a, config_drive=d", `
the same | deploying | continue | Unfinished deployment is continued | 0/0
the same | wait call-back | continue | Unfinished deployment is continued | 0/0
the same | deploy failed | repeat (wipe) | Failed deployment is repeated | 1/0
the same | deleting | repeat (wipe) | Undeployed node is deployed again | 1/0
the same | error | repeat (wipe) | Undeployed node is deployed again | 1/0
the same | available | repeat (wipe) | Undeployed node is deployed again | 1/0
the same | available, creation interrupted before Ironic began | deploy (wipe) | Unfinished deployment is continued | 0/0
the same | manageable, creation interrupted before Ironic began | deploy (wipe) | Unfinished deployment is continued | 0/0
the same | deploying, creation interrupted before Ironic began | continue | Unfinished deployment is continued | 0/0
the same | deploy failed, creation interrupted before Ironic began | repeat (wipe) | Failed deployment is repeated | 1/0
the same | active, creation interrupted before Ironic began | - | - | 0/0
the same | deploy failed, protected | repeat (wipe) | Failed deployment is repeated, !Machine is protected | 1/0
image=b | deploying | rebuild (wipe) | Rebuild wipes the root disk | 1/0
image=b | deploying, an earlier run deploys the wish | continue | Unfinished deployment is continued | 0/0
image=b | active, an earlier run has deployed the wish | - | Deployment of an earlier run is recorded | 0/0
image=b | deploy failed | rebuild (wipe) | Rebuild wipes the root disk | 1/0
image=? | deploying | rebuild (wipe)? | Rebuild wipes the root disk | ?/0
image=? | deploy failed | rebuild (wipe) | Rebuild wipes the root disk | 1/0
image=b | available, creation interrupted before Ironic began | deploy (wipe) | Unfinished deployment is continued | 0/0
image=b, on_change=ignore | deploying | continue | Unfinished deployment is continued | 0/0
image=b, on_change=ignore | deploy failed | repeat (wipe) | Failed deployment is repeated | 1/0
restart_triggers=2 | deploying | continue | Unfinished deployment is continued | 0/0
power_state=off | deploy failed | repeat (wipe), power-off (restart) | Failed deployment is repeated | 1/0
vifs=p1 | deploy failed | repeat (wipe) | Failed deployment is repeated | 1/0
the same | service failed | - | - | 0/0
the same | service hold | - | - | 0/0
`)
}

// A machine that is to enter rescue mode, or that another client has put there.
func TestDecide_rescue(t *testing.T) {
	t.Parallel()
	decideAll(t, "image=a, restart_triggers=1", `
rescue=1 | active | rescue (restart) | Machine enters rescue mode | 0/1
rescue=? | active | - | !Value must be known during plan | 0/0
rescue=1 | off | rescue (restart) | Machine enters rescue mode | 0/1
rescue=1, image=b | active | rebuild (wipe) | Rebuild wipes the root disk, !Not possible in rescue mode | 1/0
rescue=1, restart_triggers=2 | active | restart (restart) | Machine is restarted, !Not possible in rescue mode | 0/1
rescue=1, restart_triggers=- | active | rescue (restart) | Machine enters rescue mode | 0/1
rescue=1 | importing | - | Rescue is recorded only | 0/0
rescue=1 | deploying | continue | Unfinished deployment is continued, !Not possible in rescue mode | 0/0
image=b | rescue | - | Change waits for the end of the rescue | 0/0
restart_triggers=2 | rescue | - | Change waits for the end of the rescue | 0/0
config_drive=d | rescue | rebuild (wipe) | Rebuild wipes the root disk, !Not possible in rescue mode | 1/0
power_state=on | rescue | - | - | 0/0
the same | rescue | - | - | 0/0
the same | rescue failed | - | - | 0/0
`)
}

// The end of a rescue boots the installer of a machine that was deployed with anaconda.
func TestDecide_rescueThatReinstalls(t *testing.T) {
	t.Parallel()
	decideAll(t, "image=a", `
rescue=1 | deployed by anaconda | - | !Rescue ends with an installation | 0/0
rescue=1 | detected by direct | rescue (restart) | Machine enters rescue mode | 0/1
rescue=1 | importing, deployed by anaconda | - | Rescue is recorded only | 0/0
`)
	decideAll(t, "image=a, rescue=1", `
the same | rescue, deployed by anaconda | - | - | 0/0
rescue=2 | rescue, deployed by anaconda | rescue (restart) | Machine enters rescue mode | 0/1
rescue=- | rescue, deployed by anaconda | unrescue (restart) | Rescue ends with an installation, Machine leaves rescue mode | 0/1
rescue=-, image=b | rescue, deployed by anaconda | unrescue (restart), rebuild (wipe) | Rebuild wipes the root disk, Machine leaves rescue mode | 1/1
`)
	decideAll(t, "adopt, on_destroy=forget", `
rescue=1 | deployed by anaconda | - | !Rescue ends with an installation | 0/0
`)
}

// Ironic chooses the deploy interface in place of autodetect only when a machine is not deployed.
func TestDecide_imageThatAutodetectChose(t *testing.T) {
	t.Parallel()
	const anew, stays = "undeploy (wipe), deploy (wipe), replaced for ", "rebuild (wipe) | Rebuild wipes the root disk, Deploy " +
		"interface stays | 1/0"
	decideAll(t, "image=http://images/a, config_drive=d", strings.NewReplacer("ANEW", anew, "STAYS", stays).Replace(`
image=http://images/b | detected by direct | rebuild (wipe) | Rebuild wipes the root disk | 1/0
image=http://images/b | detected by bootc | ANEWimage | Deploy interface has to be chosen again | 0/0
image=http://images/b | detected by ramdisk | ANEWimage | Deploy interface has to be chosen again | 0/0
image=http://images/b | detected by custom-agent | rebuild (wipe) | Rebuild wipes the root disk | 1/0
image=http://images/b | deployed by bootc | rebuild (wipe) | Rebuild wipes the root disk | 1/0
image=oci://images/b | detected by direct | STAYS
image=oci://images/b | detected by bootc | STAYS
image=oci://images/b | detected by ramdisk | ANEWimage | Deploy interface has to be chosen again | 0/0
image=oci://images/b | deployed by direct | rebuild (wipe) | Rebuild wipes the root disk | 1/0
image=oci://images/b, instance_info=by bootc | detected by direct | rebuild (wipe) | Rebuild wipes the root disk | 1/0
image=http://images/b, instance_info=by direct | detected by bootc | rebuild (wipe) | Rebuild wipes the root disk | 1/0
image=http://images/b, instance_info=a ramdisk | detected by direct | ANEWimage+instance_info | Deploy interface has to be chosen again | 0/0
instance_info=a ramdisk | detected by direct | ANEWinstance_info | Deploy interface has to be chosen again | 0/0
config_drive=e | detected by bootc | rebuild (wipe) | Rebuild wipes the root disk | 1/0
image=http://images/b, on_change=ignore | detected by bootc | - | - | 0/0
image=http://images/b, on_change=replace | detected by bootc | ANEWimage | - | 0/0
image=? | detected by bootc | rebuild (wipe)? | Rebuild wipes the root disk | ?/0
image=http://images/b | deploy failed, detected by bootc | ANEWimage | Deploy interface has to be chosen again | 0/0
image=http://images/b | importing, detected by bootc | - | Imported machine runs something else, Imported deployment is recorded only | 0/0
image=http://images/b | detected by bootc, protected | replaced for image | Deploy interface has to be chosen again, !Machine is protected | 0/0
image=http://images/b | rescue, detected by bootc | - | Change waits for the end of the rescue | 0/0
the same | detected by ramdisk | - | - | 0/0
`))
}

// A machine that this resource has put into rescue mode.
func TestDecide_endOfRescue(t *testing.T) {
	t.Parallel()
	decideAll(t, "image=a, restart_triggers=1, rescue=1", `
the same | rescue | - | - | 0/0
the same | rescuing | - | - | 0/0
rescue=2 | rescue | rescue (restart) | Machine enters rescue mode | 0/1
rescue=- | rescue | unrescue (restart) | Machine leaves rescue mode | 0/1
rescue=- | unrescue failed | unrescue (restart) | Machine leaves rescue mode | 0/1
rescue=-, image=b | rescue | unrescue (restart), rebuild (wipe) | Rebuild wipes the root disk, Machine leaves rescue mode | 1/1
rescue=-, restart_triggers=2 | rescue | unrescue (restart) | Machine is restarted, Machine leaves rescue mode | 0/1
rescue=-, power_state=off | rescue | unrescue (restart), power-off (restart) | Power is switched, Machine leaves rescue mode | 0/1
image=b | rescue | - | Change waits for the end of the rescue | 0/0
image=b, rescue=2 | rescue | rescue (restart) | Change waits for the end of the rescue, Machine enters rescue mode | 0/1
config_drive=d | rescue | rebuild (wipe) | Rebuild wipes the root disk, !Not possible in rescue mode | 1/0
restart_triggers=2 | rescue | - | Change waits for the end of the rescue | 0/0
`)
}

// A machine that runs what others have deployed.
func TestDecide_adoption(t *testing.T) {
	t.Parallel()
	decideAll(t, "adopt, on_destroy=forget", `
the same | active | - | - | 0/0
the same | new | adopt | - | 0/0
power_state=off, vifs=p1 | new | connect, adopt, power-off (restart) | - | 0/0
rescue=1 | new | adopt | !Nothing to rescue | 0/0
the same | manageable | adopt | Unfinished adoption is continued | 0/0
the same | adopting | adopt | Unfinished adoption is continued | 0/0
the same | adopt failed | adopt | Unfinished adoption is continued | 0/0
the same | deploy failed | - | Adopted machine does not run | 0/0
instance_info=i | active | describe | - | 0/0
power_state=off | active | power-off (restart) | Power is switched | 0/0
restart_triggers=1 | active | - | First triggers are recorded only | 0/0
image=a | active | - | Adopted deployment is recorded only | 0/0
image=a, rebuild_triggers=1 | active | - | Adopted deployment is recorded only | 0/0
image=a | deploy failed | repeat (wipe) | Failed deployment is repeated | 1/0
image=a, rebuild_triggers=1 | deploy failed | repeat (wipe) | Failed deployment is repeated | 1/0
instance_info=i | importing | - | Imported deployment is recorded only | 0/0
live_iso=a1 | active | - | Live ISO is taken as booted | 0/0
live_iso=a1, rebuild_triggers=1 | active | - | Live ISO is taken as booted, First triggers are recorded only | 0/0
`)
	decideAll(t, "adopt, on_destroy=undeploy, rebuild_triggers=1", `
image=a, rebuild_triggers=2 | active | rebuild (wipe) | Rebuild wipes the root disk | 1/0
live_iso=a1, rebuild_triggers=2 | active | boot (restart) | Machine is restarted with a new live ISO | 0/1
`)
	decideAll(t, "image=a, config_drive=d", `
adopt, config_drive=- | active | - | - | 0/0
adopt, config_drive=-, on_change=replace | active | - | - | 0/0
`)
	decideAll(t, "live_iso=a1, shared_content=s1", `
adopt | active | - | - | 0/0
`)
}

// A deployment that does not exist yet.
func TestDecide_newDeployment(t *testing.T) {
	t.Parallel()
	decideAll(t, "image=a", `
the same | new | deploy (wipe) | - | 0/0
image=? | new | deploy (wipe) | - | 0/0
power_state=off, protected=true, vifs=p1 | new | deploy (wipe), power-off (restart), protect | - | 0/0
instance_name=web | new | deploy (wipe) | - | 0/0
protected=false | new | deploy (wipe) | - | 0/0
rescue=1 | new | deploy (wipe) | !Nothing to rescue | 0/0
on_change=? | new | - | !Value must be known during plan | 0/0
`)
}

// A deployment that was imported.
func TestDecide_imported(t *testing.T) {
	t.Parallel()
	decideAll(t, "image=a", `
the same | importing | - | - | 0/0
image=b | importing | - | Imported machine runs something else, Imported deployment is recorded only | 0/0
image=b, on_change=ignore | importing | - | Imported deployment is recorded only | 0/0
image=?, config_drive=d | importing | - | Imported deployment is recorded only | 0/0
config_drive=d, rebuild_triggers=1 | importing | - | Imported deployment is recorded only | 0/0
power_state=off | importing | - | Power is not switched yet | 0/0
vifs=p1 | importing | - | - | 0/0
restart_triggers=1 | importing | - | - | 0/0
the same | importing, deploy failed | - | Imported deployment does not run | 0/0
image=b, power_state=off | importing, deploy failed | - | Imported deployment does not run, Power is not switched yet | 0/0
the same | importing, available | - | Imported deployment does not run | 0/0
the same | importing, error | - | Imported deployment does not run | 0/0
power_state=off | importing, deploying | continue | Unfinished deployment is continued, Power is not switched yet | 0/0
the same | imported, available | repeat (wipe) | Undeployed node is deployed again | 1/0
config_drive=d | imported, available | repeat (wipe) | Undeployed node is deployed again | 1/0
the same | import applied, available | repeat (wipe) | Undeployed node is deployed again | 1/0
the same | imported, deploy failed | repeat (wipe) | Failed deployment is repeated | 1/0
image=b | imported | rebuild (wipe) | Rebuild wipes the root disk | 1/0
config_drive=d | imported | - | Imported deployment is recorded only | 0/0
config_drive=d, rebuild_triggers=1, restart_triggers=1 | imported | - | Imported deployment is recorded only | 0/0
traits=CUSTOM_A, config_drive=d | imported | rebuild (wipe) | Rebuild wipes the root disk | 1/0
image=?, config_drive=d | imported | rebuild (wipe)? | Rebuild wipes the root disk, Imported deployment is recorded only | ?/0
traits=CUSTOM_A | imported | rebuild (wipe) | Rebuild wipes the root disk | 1/0
config_drive=d | import applied | - | Imported deployment is recorded only | 0/0
image=b | import applied | rebuild (wipe) | Rebuild wipes the root disk | 1/0
rebuild_triggers=1 | import applied | - | First triggers are recorded only | 0/0
power_state=off | imported | power-off (restart) | Power is switched | 0/0
power_state=off | import applied | power-off (restart) | Power is switched | 0/0
vifs=p1 | imported | connect | - | 0/0
vifs=p1 | import applied | connect | - | 0/0
node=uuid-2 | import applied | - | Deployment stays on its node | 0/0
node=uuid-2 | importing | replaced for node_id | !Imported deployment is not replaced | 0/0
allocation=other | imported | replaced for allocation_id | !Imported deployment is not replaced | 0/0
live_iso=x | imported | replaced for live_iso | !Imported deployment is not replaced | 0/0
live_iso=x | importing | replaced for live_iso | !Imported deployment is not replaced | 0/0
live_iso=x | import applied | undeploy (wipe), deploy (restart), replaced for live_iso | - | 0/0
node=uuid-2 | imported, available | undeploy (wipe), deploy (wipe), replaced for node_id | - | 0/0
`)
}

// A plan that deploys an imported or undeployed machine names the cause.
func TestDecide_namesCauseOfDeployment(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ seen, wish, says string }{
		{"imported", "root_device=r, traits=CUSTOM_A", "the configuration differs from what it was deployed with: root_device, traits. " +
			"Ironic rebuilds it"},
		{"imported", "image=b, traits=CUSTOM_A", "differs from what it was deployed with: image (the node has the image a), traits."},
		{
			"available", "the same",
			`Node n1 is in state "available": another client of Ironic, or an interrupted run, has undeployed it, and its data is lost. The apply deploys it, which`,
		},
		{"deleting", "the same", `has undeployed it, and its data is lost. The apply finishes that, then deploys it, which`},
		{"import applied, available", "the same", "it was imported so, or another client of Ironic has undeployed it since."},
		{
			"imported, available", "the same",
			`Node n1 is in state "available": it was imported so, or another client of Ironic has undeployed it since. The apply deploys it, which`,
		},
	} {
		s := seeing(runningMachine("image=a"), tt.seen)
		if p := deploy.Decide(changed(s.Was, tt.wish), s); len(p.Notices) != 1 || !strings.Contains(p.Notices[0].Detail, tt.says) {
			t.Errorf("%s | %s: %+v, want %q", tt.seen, tt.wish, p.Notices, tt.says)
		}
	}
}

// A plan that would replace an imported deployment says what it runs and what the configuration says.
func TestDecide_saysWhyAnImportIsNotReplaced(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ runs, wish, says string }{
		{"image=a", "live_iso=x", "Node n1 was imported: it runs the image a, and the configuration says a live ISO. That change"},
		{"live_iso=x", "image=a", "it runs a live ISO, and the configuration says the image a. That change"},
		{"image=-", "live_iso=x", "it runs neither an image nor a live ISO, and the configuration says a live ISO. That change"},
		{"image=a", "node=n2", "the configuration names node n2. That change"},
		{"image=a", "allocation=other", "it is reserved by reservation, and the configuration names allocation other. That change"},
	} {
		s := seeing(runningMachine(tt.runs), "importing")
		p := deploy.Decide(changed(s.Was, tt.wish), s)
		advises := len(p.Notices) == 1 && strings.Contains(p.Notices[0].Detail, `first apply those values with on_destroy = "undeploy"`)
		if !advises || !strings.Contains(p.Notices[0].Detail, tt.says) {
			t.Errorf("%s | %s: %+v, want %q", tt.runs, tt.wish, p.Notices, tt.says)
		}
	}
}

// The plan that restarts a machine with an image says until when the apply waits for the image to settle.
func TestDecide_saysWhenTheImageHasSettled(t *testing.T) {
	t.Parallel()
	const waits = " The apply first waits until 2026-05-01T12:00:30Z, when the image has settled."
	for built, says := range map[string]bool{"2026-05-01T11:59:30Z": true, "2026-05-01T11:00:00Z": false} {
		s := runningMachine("live_iso=a1, host_content=h1")
		p := deploy.Decide(changed(s.Was, "live_iso=a2, host_content=h2, built_at="+built), s)
		if len(p.Notices) != 1 || strings.HasSuffix(p.Notices[0].Detail, waits) != says {
			t.Errorf("built at %s: the plan says %+v", built, p.Notices)
		}
	}
}

// The error of each protected machine has the advice: Terraform prints errors in no fixed order.
func TestDecide_advisesOnEachProtectedMachine(t *testing.T) {
	t.Parallel()
	for wish, says := range map[string]string{
		"image=b":          "set protected = false",
		"destroy":          "If it may be wiped, first apply protected = false, without any other change",
		"allocation=other": "this plan would replace its deployment for a change of allocation_id, which undeploys",
	} {
		s := seeing(runningMachine("image=a"), "protected")
		p := deploy.Decide(changed(s.Was, wish), s)
		if last := len(p.Notices) - 1; last < 0 || !strings.Contains(p.Notices[last].Detail, says) {
			t.Errorf("%s: the plan says %+v, want %q", wish, p.Notices, says)
		}
	}
}

// Another node or reservation, and the end.
func TestDecide_placeAndEnd(t *testing.T) {
	t.Parallel()
	decideAll(t, "image=a", `
node=n1 | active | - | - | 0/0
node=uuid-2 | active | - | Deployment stays on its node | 0/0
node=n2 | to be called n2 | - | - | 0/0
node=? | active | - | - | 0/0
the same | host destroyed | - | !Deployed host is destroyed | 0/0
image=b | host destroyed | - | !Deployed host is destroyed | 0/0
node=? | host destroyed | - | Deployed host is destroyed | 0/0
allocation=other | host destroyed | undeploy (wipe), deploy (wipe), replaced for allocation_id | - | 0/0
node=? | host replaced | undeploy (wipe), deploy (wipe), replaced for node_id | - | 0/0
node=uuid-2, allocation=reservation | active | - | Deployment stays on its node | 0/0
node=uuid-2, allocation=other | active | undeploy (wipe), deploy (wipe), replaced for node_id+allocation_id | - | 0/0
allocation=? | active | - | - | 0/0
allocation=? | protected | - | - | 0/0
allocation=? | importing | - | - | 0/0
node=?, allocation=? | importing | - | - | 0/0
allocation=? | allocation replaced | undeploy (wipe), deploy (wipe), replaced for allocation_id | - | 0/0
node=?, allocation=? | allocation replaced | undeploy (wipe), deploy (wipe), replaced for node_id+allocation_id | - | 0/0
allocation=reservation | active | - | - | 0/0
allocation=other | protected | replaced for allocation_id | !Machine is protected | 0/0
allocation=other, on_destroy=forget | active | undeploy (wipe), deploy (wipe), replaced for allocation_id | - | 0/0
live_iso=x | active | undeploy (wipe), deploy (restart), replaced for live_iso | - | 0/0
image=b, on_change=replace | active | undeploy (wipe), deploy (wipe), replaced for image | - | 0/0
image=b, on_change=replace | active, an earlier run has deployed the wish | - | Deployment of an earlier run is recorded | 0/0
image=?, on_change=replace | active | - | - | 0/0
config_drive=?, traits=?, on_change=replace | active | - | - | 0/0
config_drive=?, traits=T, on_change=replace | active | undeploy (wipe), deploy (wipe), replaced for traits | - | 0/0
live_iso=? | active | undeploy (wipe), deploy (restart), replaced for live_iso | - | 0/0
live_iso=?, image=? | active | rebuild (wipe)? | Rebuild wipes the root disk | ?/0
live_iso=?, image=?, on_change=replace | active | - | - | 0/0
adopt=? | active | - | !Value must be known during plan | 0/0
adopt=? | new | - | !Value must be known during plan | 0/0
image=b, on_change=replace | protected | replaced for image | !Machine is protected | 0/0
image=b, on_change=replace, rebuild_triggers=1, restart_triggers=1 | active | undeploy (wipe), deploy (wipe), replaced for image | - | 0/0
allocation=other, rescue=1 | active | undeploy (wipe), deploy (wipe), replaced for allocation_id | !Nothing to rescue | 0/0
destroy | active | undeploy (wipe) | - | 0/0
destroy | protected | - | !Machine is protected | 0/0
`)
	decideAll(t, "image=a, allocation=reservation", `
allocation=- | active | - | - | 0/0
`)
	decideAll(t, "image=a, on_destroy=forget", `
destroy | active | forget | - | 0/0
destroy | protected | forget | - | 0/0
`)
}

// A machine that runs a live ISO.
func TestDecide_liveISO(t *testing.T) {
	t.Parallel()
	decideAll(t, "live_iso=a1, shared_content=s1, host_content=h1, rebuild_triggers=1, restart_triggers=1", `
the same | active | - | - | 0/0
the same | new | deploy (restart) | - | 0/0
live_iso=a2 | active | - | Host runs an older live ISO | 0/0
shared_content=s2 | active | - | Host runs an older live ISO | 0/0
host_content=h2 | active | - | Host waits for a newer live ISO | 0/0
live_iso=a2, host_content=h2 | active | boot (restart) | Machine is restarted with a new live ISO | 0/1
live_iso=a2, shared_content=s2 | active | - | Host runs an older live ISO | 0/0
live_iso=a2, reboot_policy=always | active | boot (restart) | Machine is restarted with a new live ISO | 0/1
live_iso=a2, host_content=h2, reboot_policy=never | active | - | Host runs an older live ISO | 0/0
live_iso=a2, host_content=h2, installing=true | active | - | Host runs an older live ISO | 0/0
live_iso=a2, registered=false | active | boot (restart) | Machine is restarted with a new live ISO | 0/1
live_iso=a2, registered=? | active | boot (restart)? | Live ISO is not known yet | 0/?
live_iso=? | active | boot (restart)? | Live ISO is not known yet | 0/?
url=? | active | - | Host is not restarted with the new live ISO | 0/0
url=?, host_content=h2 | active | boot (restart)? | Machine is restarted with a new live ISO | 0/?
url=?, shared_content=? | active | - | Host is not restarted with the new live ISO | 0/0
live_iso=a2, host_content=h2, contains=other | active | - | Host waits for a newer live ISO | 0/0
live_iso=a2, host_content=h2 | no BMC | ask | Machine has to be restarted by hand | 0/0
live_iso=a2, host_content=h2 | in maintenance | - | Restart waits for the machine | 0/0
live_iso=a2, host_content=h2 | no record of the boot | - | Live ISO is taken as booted | 0/0
rebuild_triggers=2 | no record of the boot | boot (restart) | Machine is restarted with a new live ISO | 0/1
live_iso=a2, host_content=h2 | not refreshed | - | !State is not refreshed | 0/0
live_iso=a2, host_content=h2, built_at=2027-01-01T00:00:00Z | active | - | !Image from the future | 0/0
registered=false, live_iso=a1, rebuild_triggers=2 | booted 4 times | - | !Machine was restarted too often | 0/0
config_drive=d | active | boot (restart) | Machine is restarted with a new live ISO | 0/1
config_drive=d, on_change=ignore | active | - | Change without effect | 0/0
rebuild_triggers=2 | active | boot (restart) | Machine is restarted with a new live ISO | 0/1
restart_triggers=2 | active | restart (restart) | Machine is restarted | 0/1
restart_triggers=2, live_iso=a2, host_content=h2 | active | boot (restart) | Machine is restarted with a new live ISO | 0/1
power_state=off | active | power-off (restart) | Power is switched | 0/0
rebuild_triggers=2 | protected | - | !Machine is protected | 0/0
live_iso=a2, host_content=h2 | protected | - | Host runs an older live ISO | 0/0
rebuild_triggers=2, protected=false | protected | unprotect, boot (restart) | Machine is restarted with a new live ISO | 0/1
rescue=1 | active | rescue (restart) | Machine enters rescue mode | 0/1
rescue=1, rebuild_triggers=2 | active | rescue (restart) | Change waits for the end of the rescue, Machine enters rescue mode | 0/1
rescue=1, config_drive=d | active | rescue (restart) | !Machine cannot be restarted now, Machine enters rescue mode | 0/1
live_iso=a2, host_content=h2 | rescue | - | Change waits for the end of the rescue | 0/0
config_drive=d | rescue | - | !Machine cannot be restarted now | 0/0
the same | deploying | continue | Unfinished deployment is continued | 0/0
the same | deploy failed | repeat (restart) | Failed deployment is repeated | 0/1
live_iso=a2, host_content=h2 | deploy failed | repeat (restart) | Failed deployment is repeated | 0/1
live_iso=a2, host_content=h2 | importing | - | Host runs an older live ISO | 0/0
live_iso=? | importing | - | - | 0/0
url=?, reboot_policy=? | importing | - | - | 0/0
the same | importing, deploy failed | - | Imported deployment does not run | 0/0
the same | imported, deploy failed | repeat (restart) | Failed deployment is repeated | 0/1
the same | available, creation interrupted before Ironic began | deploy (restart) | Unfinished deployment is continued | 0/0
contains=other | new | deploy (restart) | !Live ISO lacks wanted content | 0/0
built_at=2027-01-01T00:00:00Z | new | deploy (restart) | !Image from the future | 0/0
`)
}

// A change that restarts a machine waits while the machine cannot be restarted: a refusal would hold up the other machines of the apply.
func TestDecide_liveISOThatHasToWait(t *testing.T) {
	t.Parallel()
	decideAll(t, "live_iso=a1, shared_content=s1, host_content=h1, rebuild_triggers=1, restart_triggers=1, config_drive=d", `
rebuild_triggers=2 | active | boot (restart) | Machine is restarted with a new live ISO | 0/1
rebuild_triggers=2 | rescue | - | Change waits for the end of the rescue | 0/0
restart_triggers=2 | rescue | - | Change waits for the end of the rescue | 0/0
config_drive=e | rescue | - | Change waits for the end of the rescue | 0/0
live_iso=a2, host_content=h2, rebuild_triggers=2 | rescue | - | Change waits for the end of the rescue, Change waits for the end of the rescue | 0/0
rebuild_triggers=2 | in maintenance | - | Restart waits for the machine | 0/0
config_drive=e | in maintenance | - | Restart waits for the machine | 0/0
restart_triggers=2 | in maintenance | restart (restart) | Machine is restarted | 0/1
rebuild_triggers=2, restart_triggers=2 | in maintenance | restart (restart) | Restart waits for the machine, Machine is restarted | 0/1
rebuild_triggers=-, restart_triggers=- | rescue | - | - | 0/0
config_drive=- | rescue | - | !Machine cannot be restarted now | 0/0
`)
}

// The first value of a trigger is recorded, and so is its end: neither touches the machine, whatever else the plan does.
func TestDecide_firstTrigger(t *testing.T) {
	t.Parallel()
	const triggers = "rebuild_triggers=1, restart_triggers=1"
	decideAll(t, "image=a, config_drive=d", strings.ReplaceAll(`
TRIGGERS | active | - | First triggers are recorded only | 0/0
TRIGGERS | off | - | First triggers are recorded only | 0/0
TRIGGERS | protected | - | First triggers are recorded only | 0/0
TRIGGERS | new | deploy (wipe) | - | 0/0
TRIGGERS | importing | - | Imported deployment is recorded only | 0/0
TRIGGERS | imported | - | Imported deployment is recorded only | 0/0
TRIGGERS | import applied | - | First triggers are recorded only | 0/0
TRIGGERS | rescue | - | First triggers are recorded only | 0/0
TRIGGERS, rescue=1 | active | rescue (restart) | First triggers are recorded only, Machine enters rescue mode | 0/1
TRIGGERS | deploying | continue | Unfinished deployment is continued | 0/0
TRIGGERS | deploy failed | repeat (wipe) | Failed deployment is repeated | 1/0
TRIGGERS, image=b | active | rebuild (wipe) | Rebuild wipes the root disk | 1/0
TRIGGERS, image=b, on_change=ignore | active | - | First triggers are recorded only | 0/0
TRIGGERS, image=b, on_change=replace | active | undeploy (wipe), deploy (wipe), replaced for image | - | 0/0
TRIGGERS, power_state=off | active | power-off (restart) | Power is switched, First triggers are recorded only | 0/0
rebuild_triggers=?, restart_triggers=? | active | - | First triggers are recorded only | 0/0
rebuild_triggers=?, on_change=ignore, image=b | active | - | First triggers are recorded only | 0/0
`, "TRIGGERS", triggers))
	decideAll(t, "live_iso=a1, host_content=h1", strings.ReplaceAll(`
TRIGGERS | active | - | First triggers are recorded only | 0/0
TRIGGERS | rescue | - | First triggers are recorded only | 0/0
TRIGGERS | in maintenance | - | First triggers are recorded only | 0/0
TRIGGERS, reboot_policy=always | active | - | First triggers are recorded only | 0/0
TRIGGERS, live_iso=a2, reboot_policy=always | active | boot (restart) | Machine is restarted with a new live ISO | 0/1
TRIGGERS, live_iso=a2, host_content=h2, reboot_policy=never | active | - | Host runs an older live ISO, First triggers are recorded only | 0/0
rebuild_triggers=?, restart_triggers=? | active | - | First triggers are recorded only | 0/0
`, "TRIGGERS", triggers))
}

// The plan says how a machine is switched off, also for a restart.
func TestDecide_saysHowPowerIsSwitched(t *testing.T) {
	t.Parallel()
	const restarts = "Node n1 is switched off and on: restart_triggers changes. "
	const off = "Node n1 is switched off. "
	for _, tt := range []struct{ wish, seen, says string }{
		{"restart_triggers=2", "active", restarts +
			`Its power is cut. With power_off_mode = "graceful", its operating system would be asked first. Each`},
		{"restart_triggers=2, power_off_mode=hard", "active", restarts + "Its power is cut."},
		{"restart_triggers=2, power_off_mode=soft", "active", restarts + "Its operating system is asked to shut down. If the machine " +
			"stays on, the apply fails. Each"},
		{"restart_triggers=2, power_off_mode=graceful", "active", restarts + "Its operating system is asked to shut down. If the machine " +
			"stays on for 3 minutes, its power is cut. Each"},
		{"restart_triggers=2, power_off_mode=?", "active", restarts + "How is not known yet: power_off_mode says it. Each"},
		{"restart_triggers=2, power_off_mode=graceful", "off", "Node n1 is off, and is switched on: restart_triggers changes. Each"},
		{"power_state=off", "active", off + "Its power is cut."},
		{"power_state=off, power_off_mode=soft", "active", off + "Its operating system is asked to shut down. If the machine stays on, " +
			"the apply fails."},
		{"power_state=off, power_off_mode=graceful", "active", off + "Its operating system is asked to shut down. If the machine stays " +
			"on for 3 minutes, its power is cut."},
		{"power_state=on, power_off_mode=graceful", "off", "Node n1 is switched on."},
	} {
		s := seeing(runningMachine("image=a, restart_triggers=1"), tt.seen)
		p := deploy.Decide(changed(s.Was, tt.wish), s)
		if len(p.Notices) != 1 || !strings.HasPrefix(p.Notices[0].Detail, tt.says) {
			t.Errorf("wished: %s; seen: %s: the plan says %+v, want %q", tt.wish, tt.seen, p.Notices, tt.says)
		}
	}
}

// What ignore_changes keeps of a config drive lacks the secret: a plan that deploys the machine says which one it gets.
func TestDecide_ignoredSecret(t *testing.T) {
	t.Parallel()
	for wish, want := range map[string]bool{"the same": false, "rebuild_triggers=2": true, "image=b": true, "power_state=off": false} {
		s := runningMachine("image=a, config_drive=d, rebuild_triggers=1")
		w := changed(s.Was, wish)
		w.Hidden = true
		if p := deploy.Decide(w, s); strings.Contains(notices(p), "Ignored secret is sent") != want {
			t.Errorf("wished: %s: the plan says %s", wish, notices(p))
		}
	}
}

// The advice to change a trigger is right for a deployment that has none yet.
func TestDecide_triggerAdvice(t *testing.T) {
	t.Parallel()
	for wish, says := range map[string]string{
		"image=b": "To deploy that content, set rebuild_triggers to a first value, which is only recorded, and " +
			"change it in a later apply.",
		"image=b, rebuild_triggers=1": "To deploy that content, change rebuild_triggers in a later apply: this one only records " +
			"its first value.",
	} {
		s := runningMachine("adopt, on_destroy=forget")
		if p := deploy.Decide(changed(s.Was, wish), s); len(p.Notices) != 1 || !strings.HasSuffix(p.Notices[0].Detail, says) {
			t.Errorf("%s: the plan says %+v", wish, p.Notices)
		}
	}
}

// boot_status shows what the live ISO of the configuration asks of the machine after the apply: action, stale, and what is obsolete.
func TestDecide_bootStatus(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ wish, seen, want string }{
		{"the same", "active", "none false []"},
		{"host_content=h2", "active", "wait true [host.c]"},
		{"live_iso=a2, shared_content=s2", "active", "none true [shared.c]"},
		{"live_iso=a2, host_content=h2", "active", "none false []"},
		{"live_iso=a2, host_content=h2", "no BMC", "manual true [host.c]"},
		{"live_iso=a2", "waits for a restart by hand", "manual true [image]"},
		{"live_iso=a2, host_content=h2", "in maintenance", "wait true [host.c]"},
		{"live_iso=a2, host_content=h2, reboot_policy=never", "active", "none true [host.c]"},
		{"url=?", "active", "none false []"},
		{"url=?, shared_content=?", "active", "unknown"},
		{"url=?, registered=false", "active", "unknown"},
	} {
		s := seeing(runningMachine("live_iso=a1, shared_content=s1, host_content=h1"), tt.seen)
		got, boot := "unknown", deploy.Decide(changed(s.Was, tt.wish), s).Forecast.Boot
		if !boot.Unknown {
			got = fmt.Sprintf("%s %t %v", boot.V.Action, boot.V.Stale, boot.V.Obsolete)
		}
		if got != tt.want {
			t.Errorf("wished: %s; seen: %s: boot_status is %s, want %s", tt.wish, tt.seen, got, tt.want)
		}
	}
}

// A machine in service.
func TestDecide_service(t *testing.T) {
	t.Parallel()
	decideAll(t, "image=a, restart_triggers=1", `
image=b | servicing | rebuild (wipe) | Rebuild wipes the root disk | 1/0
image=b | service failed | rebuild (wipe) | Rebuild wipes the root disk | 1/0
restart_triggers=2 | service wait | restart (restart) | Machine is restarted | 0/1
rescue=1 | service hold | rescue (restart) | Machine enters rescue mode | 0/1
`)
}

// A machine whose deployment is done when it answers.
func TestDecide_readyCheck(t *testing.T) {
	t.Parallel()
	decideAll(t, "image=a, restart_triggers=1, ready_check=r1", `
the same | active | - | - | 0/0
the same | not ready | check | - | 0/0
ready_check=r2 | active | check | - | 0/0
ready_check=- | not ready | - | - | 0/0
ready_check=? | active | check? | - | 0/0
image=b | active | rebuild (wipe), check | Rebuild wipes the root disk | 1/0
image=? | active | rebuild (wipe)?, check | Rebuild wipes the root disk | ?/0
image=b | active, an earlier run has deployed the wish | check | Deployment of an earlier run is recorded | 0/0
image=b, on_change=ignore | active | - | - | 0/0
restart_triggers=2 | active | restart (restart), check | Machine is restarted | 0/1
restart_triggers=2 | another run has restarted for 2 | check | Restart of an earlier run is recorded | 0/0
power_state=off | active | power-off (restart) | Power is switched | 0/0
power_state=off, image=b | active | rebuild (wipe), power-off (restart) | Rebuild wipes the root disk, Power is switched | 1/0
power_state=on | off | power-on, check | Power is switched | 0/0
the same | off | - | - | 0/0
the same | off, not ready | check | Ready check of a machine that is off | 0/0
vifs=p1 | active | connect | - | 0/0
rescue=1 | active | rescue (restart) | Machine enters rescue mode | 0/1
the same | rescue | - | - | 0/0
protected=true | not ready | check, protect | - | 0/0
protected=true | protected, not ready | check | - | 0/0
protected=true, image=b | active | rebuild (wipe), check, protect | Rebuild wipes the root disk | 1/0
the same | deploying | continue, check | Unfinished deployment is continued | 0/0
the same | deploy failed | repeat (wipe), check | Failed deployment is repeated | 1/0
the same | service failed | - | Machine is not checked | 0/0
the same | new | deploy (wipe), check | - | 0/0
power_state=off | new | deploy (wipe), power-off (restart) | - | 0/0
allocation=other | active | undeploy (wipe), deploy (wipe), check, replaced for allocation_id | - | 0/0
`)
	decideAll(t, "image=a, rescue=1, ready_check=r1", `
the same | rescue | - | - | 0/0
rescue=- | rescue | unrescue (restart), check | Machine leaves rescue mode | 0/1
`)
	decideAll(t, "image=a", `
ready_check=r1 | active | check | - | 0/0
ready_check=r1 | importing | check | - | 0/0
ready_check=r1, power_state=off | importing | - | Power is not switched yet | 0/0
ready_check=r1 | importing, deploy failed | - | Imported deployment does not run | 0/0
`)
	decideAll(t, "live_iso=a1, shared_content=s1, host_content=h1, ready_check=r1", `
live_iso=a2, host_content=h2 | active | boot (restart), check | Machine is restarted with a new live ISO | 0/1
live_iso=a2 | active | - | Host runs an older live ISO | 0/0
live_iso=a2, host_content=h2 | no BMC | ask | Machine has to be restarted by hand | 0/0
`)
	decideAll(t, "adopt, on_destroy=forget, ready_check=r1", `
the same | new | adopt, check | - | 0/0
the same | not ready | check | - | 0/0
`)
}

// ready shows what the apply is certain of.
func TestDecide_readyForecast(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ wish, seen, want string }{
		{"the same", "active", "true"},
		{"the same", "not ready", "true"},
		{"ready_check=r2", "not ready", "true"},
		{"ready_check=?", "active", "unknown"},
		{"ready_check=-", "active", "null"},
		{"image=b", "active", "unknown"},
		{"image=b", "active, an earlier run has deployed the wish", "true"},
		{"power_state=off", "active", "null"},
		{"rescue=1", "active", "null"},
		{"the same", "new", "unknown"},
		{"power_state=off", "new", "null"},
	} {
		s := seeing(runningMachine("image=a, ready_check=r1"), tt.seen)
		was := s.Was
		if s.New {
			was = changed(deploy.Wish{Content: map[string]deploy.Text{}}, "node=uuid-1, image=a, ready_check=r1")
		}
		if strings.Contains(tt.seen, "an earlier run") {
			s.Sight.Content = changed(s.Was, tt.wish).Deployment.Digest()
		}
		got := "null"
		switch ready := deploy.Decide(changed(was, tt.wish), s).Forecast.Ready; {
		case ready.Unknown:
			got = "unknown"
		case ready.Set:
			got = fmt.Sprint(ready.V)
		}
		if got != tt.want {
			t.Errorf("wished: %s; seen: %s: ready is %s, want %s", tt.wish, tt.seen, got, tt.want)
		}
	}
}
