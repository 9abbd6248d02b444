#!/bin/sh
# Acts as a user of OneView: sh oneview-user.sh take|free SERVER. "free" deletes the server profile that the server has, also one of Ironic.
set -eu

rest() {
  curl -sS --fail-with-body --cacert "$ONEVIEW_CACERT_FILE" -H 'X-API-Version: 2000' -H "Auth: ${session:-}" -H 'Content-Type: application/json' "$@"
}

# at returns the address of a URI that OneView has named. The session is for OneView only.
at() {
  case $1 in
  /rest/*) echo "$ONEVIEW_ENDPOINT$1" ;;
  *) echo "OneView names something that is not on it" >&2 && exit 1 ;;
  esac
}

# run sends a request that OneView does as a task, and waits for its end.
run() {
  task=$(rest "$@")
  while echo "$task" | jq -e '.taskState | IN("New", "Starting", "Pending", "Running")' >/dev/null; do
    sleep 0.5
    next=$(at "$(echo "$task" | jq -r .uri)")
    task=$(rest "$next")
  done
  echo "$task" | jq -r '.name + ": " + .taskState, .taskErrors[].message'
  echo "$task" | jq -e '.taskState == "Completed"' >/dev/null
}

session=$(jq -n '{userName: env.ONEVIEW_USERNAME, password: env.ONEVIEW_PASSWORD}' | rest -d @- "$ONEVIEW_ENDPOINT/rest/login-sessions" | jq -r .sessionID)
server=$(rest "$ONEVIEW_ENDPOINT/rest/server-hardware" | jq -e --arg name "$2" '.members[] | select(.name == $name)') || { echo "there is no server $2" >&2; exit 1; }

case $1 in
take)
  profile=$(echo "$server" | jq '{type: "ServerProfileV12", name: ("user-" + .serialNumber), serverHardwareUri: .uri, serverHardwareTypeUri, enclosureGroupUri: .serverGroupUri}')
  run -d "$profile" "$ONEVIEW_ENDPOINT/rest/server-profiles"
  ;;
free)
  profile=$(echo "$server" | jq -er .serverProfileUri) || { echo "$2 is free" >&2; exit 1; }
  profile=$(at "$profile")
  hardware=$(at "$(echo "$server" | jq -r .uri)")
  run -X PUT -d '{"powerState": "Off", "powerControl": "PressAndHold"}' "$hardware/powerState"
  run -X DELETE -H 'If-Match: *' "$profile" # OneView refuses a deletion without If-Match
  ;;
*)
  echo "usage: $0 take|free SERVER" >&2
  exit 2
  ;;
esac
