# The same check as check-plan.sh, for OPA 1 and Conftest. metal.deny has a line for each machine that a plan harms.
#
#   terraform plan -out=saved
#   terraform show -json saved > plan.json
#   opa eval --fail-defined --format pretty --input plan.json --data policy.rego 'data.metal.deny[_]'
#
# Settings are data, such as {"metal_policy": {"wipes_only": true, "new": true, "allow": ["metal_deployment.web[\"a\"]"]}} in a file for another --data.
package metal

default wipes_only := false

wipes_only := data.metal_policy.wipes_only

# Also new hosts that are cleaned.
default new_hosts := false

new_hosts := data.metal_policy.new

default allowed := []

allowed := data.metal_policy.allow

deny contains "the input is no complete plan" if not complete

deny contains sprintf("%s: %s", [address, concat(", ", whats)]) if {
	complete
	some address in {found.address | some found in harms}
	not address in allowed
	whats := {found.what |
		some found in harms
		found.address == address
		counts(found)
	}
	count(whats) > 0
}

complete if {
	is_object(input.planned_values)
	object.get(input, "errored", false) != true
}

counts(_) if not wipes_only

counts(found) if found.erases

changes contains changed if {
	some changed in object.get(input, "resource_changes", [])
	changed.mode == "managed"
}

changes contains deferred.resource_change if {
	some deferred in object.get(input, "deferred_changes", [])
	deferred.resource_change.mode == "managed"
}

invocations contains invoked if some invoked in object.get(input, "action_invocations", [])

invocations contains deferred.action_invocation if some deferred in object.get(input, "deferred_action_invocations", [])

# A counter rises, or the plan cannot tell yet.
raises(change, counter) if change.after_unknown[counter] == true

raises(change, counter) if number(change.after, counter) > number(change.before, counter)

number(values, name) := value if {
	value := object.get(values, name, 0)
	is_number(value)
} else := 0

# If an operation is planned, too, that changes the power state, and one of the counters says so.
switches_off(change) if {
	object.get(change.before, "power_state", null) != "off"
	change.after.power_state == "off"
}

switches_off(change) if {
	object.get(change.before, "power_state", null) != "off"
	change.after_unknown.power_state == true
	object.get(change.after_unknown, "provision_state", false) != true
}

may_be(change, attribute, value) if change.after[attribute] == value

may_be(change, attribute, _) if change.after_unknown[attribute] == true

# Cleaning on the way to available erases what the site says, and so does the deletion of RAID volumes. A service erases nothing.
cleaning_erases(change) if {
	not is_deployed(change)
	may_be(change, "target_state", "available")
	object.get(change.after, "automated_clean", null) != false
}

cleaning_erases(change) if {
	not is_deployed(change)
	deletes_volumes(change)
}

is_deployed(change) if change.before.provision_state in {"active", "service failed"}

deletes_volumes(change) if change.after.raid.delete_existing == true

deletes_volumes(change) if change.after_unknown.raid == true

deletes_volumes(change) if change.after_unknown.raid.delete_existing == true

ends(changed, kind) if {
	changed.type == kind
	"delete" in changed.change.actions
}

updates(changed, kind) if {
	changed.type == kind
	"update" in changed.change.actions
	not ends(changed, kind)
}

forgets(change) if change.before.on_destroy == "forget"

forgets(change) if {
	change.before.adopt == true
	object.get(change.before, "on_destroy", null) != "undeploy"
}

harms contains {"address": changed.address, "erases": true, "what": "is new, and is cleaned"} if {
	new_hosts
	some changed in changes
	changed.type == "metal_host"
	"create" in changed.change.actions
	object.get(changed.change.after, "cleanings", "not known") != 0
}

harms contains {"address": changed.address, "erases": true, "what": "is undeployed"} if {
	some changed in changes
	ends(changed, "metal_deployment")
	not forgets(changed.change)
}

harms contains {"address": changed.address, "erases": true, "what": "its disk is written again"} if {
	some changed in changes
	updates(changed, "metal_deployment")
	raises(changed.change, "rebuilds")
}

harms contains {"address": changed.address, "erases": false, "what": "is restarted"} if {
	some changed in changes
	updates(changed, "metal_deployment")
	raises(changed.change, "restarts")
}

harms contains {"address": changed.address, "erases": false, "what": "is switched off"} if {
	some changed in changes
	some kind in {"metal_deployment", "metal_host"}
	updates(changed, kind)
	switches_off(changed.change)
}

harms contains {"address": changed.address, "erases": false, "what": "is removed from Ironic"} if {
	some changed in changes
	ends(changed, "metal_host")
	not forgets(changed.change)
}

harms contains {"address": changed.address, "erases": true, "what": "is cleaned"} if {
	some changed in changes
	updates(changed, "metal_host")
	raises(changed.change, "cleanings")
	cleaning_erases(changed.change)
}

harms contains {"address": changed.address, "erases": false, "what": "is restarted"} if {
	some changed in changes
	updates(changed, "metal_host")
	raises(changed.change, "cleanings")
	not cleaning_erases(changed.change)
}

harms contains {"address": changed.address, "erases": false, "what": "leaves the state"} if {
	some changed in changes
	changed.type in {"metal_host", "metal_deployment"}
	"forget" in changed.change.actions
}

# Of a new resource, these counters rise only if Ironic has lost the one before: what it was may still run.
harms contains {"address": changed.address, "erases": true, "what": "is cleaned"} if {
	some changed in changes
	makes(changed, "metal_host")
	raises(changed.change, "restores")
}

harms contains {"address": changed.address, "erases": true, "what": "its disk is written again"} if {
	some changed in changes
	makes(changed, "metal_deployment")
	raises(changed.change, "rebuilds")
}

makes(changed, kind) if {
	changed.type == kind
	changed.change.actions == ["create"]
}

harms contains {"address": changed.address, "erases": false, "what": "its lost record is made anew"} if {
	some changed in changes
	updates(changed, "metal_host")
	raises(changed.change, "restores")
}

# Ironic restarts and rebuilds the machine in another way, which may not work.
harms contains {"address": changed.address, "erases": false, "what": "gets another driver or boot interface"} if {
	some changed in changes
	updates(changed, "metal_host")
	is_deployed(changed.change)
	boots_otherwise(changed.change)
}

boots_otherwise(change) if change.after_unknown.driver == true

boots_otherwise(change) if object.get(change.after, "driver", null) != change.before.driver

boots_otherwise(change) if change.after_unknown.boot_interface == true

boots_otherwise(change) if object.get(change.after, "boot_interface", null) != change.before.boot_interface

harms contains {"address": changed.address, "erases": false, "what": "is released"} if {
	some changed in changes
	some kind in {"metal_allocation", "metal_allocation_group"}
	ends(changed, kind)
}

# Members of a group that give up their nodes.
harms contains {"address": changed.address, "erases": false, "what": sprintf("member %s is released", [key])} if {
	some changed in changes
	updates(changed, "metal_allocation_group")
	some key, member in changed.change.before.members
	member.node_id != null
	object.get(changed.change.after, ["members", key, "node_id"], null) != member.node_id
}

harms contains {"address": changed.address, "erases": false, "what": "its server profile is removed"} if {
	some changed in changes
	ends(changed, "metal_oneview_profile")
}

harms contains {"address": invoked.address, "erases": erases, "what": sprintf("%s %s", [does, machine(invoked)])} if {
	some invoked in invocations
	[erases, does] := effect(invoked)
}

machine(invoked) := object.get(invoked.config_values, "node_id", "a machine that is not known yet")

effect(invoked) := [false, "aborts an operation on"] if invoked.type == "metal_abort"

effect(invoked) := [true, "erases"] if {
	invoked.type == "metal_clean"
	may_erase(invoked)
}

effect(invoked) := [false, "cleans and restarts"] if {
	invoked.type == "metal_clean"
	not may_erase(invoked)
}

may_erase(invoked) if invoked.config_values.erase == true

may_erase(invoked) if invoked.config_unknown.erase == true

effect(invoked) := [false, "switches off"] if {
	invoked.type == "metal_power"
	invoked.config_values.action in {"off", "soft_off"}
}

effect(invoked) := [false, "restarts"] if {
	invoked.type == "metal_power"
	not object.get(invoked.config_values, "action", null) in {"on", "off", "soft_off"}
}

effect(invoked) := [false, "inspects and restarts"] if invoked.type == "metal_inspect"

effect(invoked) := [false, "interrupts"] if invoked.type == "metal_nmi"

effect(invoked) := [false, "services and restarts"] if invoked.type == "metal_service"

effect(invoked) := [false, "changes the virtual media of"] if invoked.type == "metal_virtual_media"
