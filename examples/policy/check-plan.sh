#!/bin/sh
# Lists machines that a plan wipes, undeploys or restarts, without the given addresses. Status 1: there are any; 2: no complete plan.
#
#   terraform plan -out=saved
#   terraform show -json saved > plan.json
#   check-plan.sh plan.json 'metal_deployment.web["a"]'
set -eu
plan=$1
shift
if ! jq -es 'length == 1 and .[0].planned_values != null and .[0].errored != true' "$plan" >/dev/null; then
  echo "$plan has no complete plan" >&2
  exit 2
fi
found=$(jq -r '
  .resource_changes[]?
  | select(.type == "metal_deployment")
  | select(.address as $address | $ARGS.positional | index([$address]) | not)
  | .address as $address | .change
  | if .actions | index("delete") then
      select(.before.on_destroy != "forget") | "\($address): is undeployed"
    elif .actions == ["update"] then
      select(.after_unknown.rebuilds == true or .after.rebuilds > .before.rebuilds) | "\($address): its disk is written again"
    else empty end,
    (select(.actions == ["update"])
      | select(.after_unknown.restarts == true or .after.restarts > .before.restarts) | "\($address): is restarted")
' "$plan" --args "$@")
if [ -n "$found" ]; then
  echo "$found"
  exit 1
fi
