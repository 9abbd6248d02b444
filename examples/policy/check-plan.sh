#!/bin/sh
# check-plan.sh [--wipes-only] [--new] [--allow ADDRESS]... PLAN.json
#
# Prints a line for each machine that a plan harms: it is wiped, undeployed, cleaned, restarted or switched off, leaves Ironic, the state
# or its reservation, is made anew because Ironic has lost it, or is deployed and gets another driver or boot interface. --wipes-only:
# only what may erase a disk. --new: also new hosts that are cleaned. --allow: not what this resource or action does.
# Status 0: there is none. 1: there are some. 2: wrong use, or no complete plan. It needs jq 1.6. policy.rego says the same.
#
#   terraform plan -out=saved
#   terraform show -json saved > plan.json
#   check-plan.sh --allow 'metal_deployment.web["a"]' plan.json
set -eu

stop() {
  echo "check-plan.sh: $*" >&2
  exit 2
}

plan='' wipes=false new=false left=$#
while [ "$left" -gt 0 ]; do # what is allowed goes to the end of the arguments
  case $1 in
    --wipes-only) wipes=true ;;
    --new) new=true ;;
    --allow)
      [ "$left" -gt 1 ] || stop "--allow needs an address"
      shift
      left=$((left - 1))
      set -- "$@" "$1"
      ;;
    --allow=*) set -- "$@" "${1#--allow=}" ;;
    -*) stop "no option $1" ;;
    *)
      [ -z "$plan" ] || stop "more than one plan: $plan, $1"
      plan=$1
      ;;
  esac
  shift
  left=$((left - 1))
done
[ -n "$plan" ] || stop "no plan. Use: check-plan.sh [--wipes-only] [--new] [--allow ADDRESS]... PLAN.json"
command -v jq >/dev/null || stop "jq is not installed"

found=$(jq -rs --argjson wipes "$wipes" --argjson new "$new" '
  def harm($erases; $what): {erases: $erases, what: $what};

  # A counter rises, or the plan cannot tell yet.
  def raises($counter): .after_unknown[$counter] == true or (.after[$counter] // 0) > (.before[$counter] // 0);

  # If an operation is planned, too, that changes the power state, and one of the counters says so.
  def switches_off: .before.power_state != "off"
    and (.after.power_state == "off" or .after_unknown.power_state == true and .after_unknown.provision_state != true);

  def is($attribute; $value): .after[$attribute] == $value or .after_unknown[$attribute] == true;

  def is_deployed: .before.provision_state == "active" or .before.provision_state == "service failed";

  # Ironic restarts and rebuilds the machine in another way, which may not work.
  def boots_otherwise: is_deployed and (.after_unknown.driver == true or .after.driver != .before.driver
    or .after_unknown.boot_interface == true or .after.boot_interface != .before.boot_interface);

  # Cleaning on the way to available erases what the site says, and so does the deletion of RAID volumes. A service erases nothing.
  def cleaning_erases: (is_deployed | not)
    and ((is("target_state"; "available") and .after.automated_clean != false)
      or .after.raid.delete_existing == true
      or ((.after_unknown.raid | if type == "object" then .delete_existing else . end) == true));

  # Members of a group that give up their nodes.
  def released: .after.members as $after | .before.members // {} | to_entries
    | map(select(.value.node_id != null and .value.node_id != $after[.key].node_id) | .key);

  def harms_of_change: .type as $type | .change
    | (.actions | index("delete")) as $ends
    | (.actions | index("update")) as $changes
    | (if $type == "metal_host" and $new and (.actions | index("create")) and .after.cleanings != 0 then
        harm(true; "is new, and is cleaned") else empty end),
      if (.actions | index("forget")) and ($type == "metal_host" or $type == "metal_deployment") then
        harm(false; "leaves the state")
      elif .actions == ["create"] and $type == "metal_host" then
        select(raises("restores")) | harm(true; "is cleaned")
      elif .actions == ["create"] and $type == "metal_deployment" then
        select(raises("rebuilds")) | harm(true; "its disk is written again")
      elif $type == "metal_deployment" and $ends then
        select(.before.on_destroy != "forget" and (.before.adopt != true or .before.on_destroy == "undeploy")) | harm(true; "is undeployed")
      elif $type == "metal_deployment" and $changes then
        (select(raises("rebuilds")) | harm(true; "its disk is written again")),
        (select(raises("restarts")) | harm(false; "is restarted")),
        (select(switches_off) | harm(false; "is switched off"))
      elif $type == "metal_host" and $ends then
        select(.before.on_destroy != "forget") | harm(false; "is removed from Ironic")
      elif $type == "metal_host" and $changes then
        (select(raises("cleanings")) | if cleaning_erases then harm(true; "is cleaned") else harm(false; "is restarted") end),
        (select(raises("restores")) | harm(false; "its lost record is made anew")),
        (select(boots_otherwise) | harm(false; "gets another driver or boot interface")),
        (select(switches_off) | harm(false; "is switched off"))
      elif ($type == "metal_allocation" or $type == "metal_allocation_group") and $ends then
        harm(false; "is released")
      elif $type == "metal_allocation_group" and $changes then
        released[] | harm(false; "member \(.) is released")
      elif $type == "metal_oneview_profile" and $ends then
        harm(false; "its server profile is removed")
      else empty end;

  def harms_of_action: .config_values as $with | .config_unknown as $unknown
    | if .type == "metal_abort" then harm(false; "aborts an operation on")
      elif .type == "metal_clean" and ($with.erase == true or $unknown.erase == true) then harm(true; "erases")
      elif .type == "metal_clean" then harm(false; "cleans and restarts")
      elif .type == "metal_inspect" then harm(false; "inspects and restarts")
      elif .type == "metal_nmi" then harm(false; "interrupts")
      elif .type == "metal_power" and ($with.action == "off" or $with.action == "soft_off") then harm(false; "switches off")
      elif .type == "metal_power" and $with.action != "on" then harm(false; "restarts")
      elif .type == "metal_service" then harm(false; "services and restarts")
      elif .type == "metal_virtual_media" then harm(false; "changes the virtual media of")
      else empty end
    | .what += " " + if $with.node_id | type == "string" then $with.node_id else "a machine that is not known yet" end;

  if length != 1 or (.[0] | type != "object" or (.planned_values | type) != "object" or .errored == true) then
    error("no complete plan")
  else .[0] end
  | ([.resource_changes[]?, .deferred_changes[]?.resource_change] | map(select(.mode == "managed") | {address, harm: harms_of_change}))
    + ([.action_invocations[]?, .deferred_action_invocations[]?.action_invocation] | map({address, harm: harms_of_action}))
  | map(select(.harm.erases or ($wipes | not)) | select(.address as $address | $ARGS.positional | index([$address]) | not))
  | group_by(.address)[]
  | "\(.[0].address): \(map(.harm.what) | unique | join(", "))"
  | gsub("[\\p{Cc}\\p{Cf}\\p{Zl}\\p{Zp}]"; "\ufffd") # a terminal would obey some characters
' "$plan" --args "$@") || stop "$plan has no complete plan"
if [ -n "$found" ]; then
  echo "$found"
  exit 1
fi
