#!/usr/bin/env bash
# export.sh LOCATION: saves what query.graphql asks of Nautobot in nautobot.json.
#
#   NAUTOBOT_URL=https://nautobot.example.com NAUTOBOT_TOKEN=... ./export.sh AMS01
#
# Commit the file: then a change in Nautobot reaches the machines after a review of the file and of the plan.
# The token goes to NAUTOBOT_URL only. The file stays as it is unless the answer has what it is to have.
# Written for the GraphQL API of Nautobot 2.2 to 2.4. Needs curl and jq.
set -euo pipefail
cd "$(dirname "$0")"
server=${NAUTOBOT_URL:?}
new=$(mktemp .export.XXXXXX) # here, so that mv replaces the file at once
trap 'rm -f "$new"' EXIT
old=/dev/null
[ ! -s nautobot.json ] || old=nautobot.json

# An answer may have errors and some of the data, and an empty one has neither.
jq -n --rawfile query query.graphql --arg location "$1" '{query: $query, variables: {location: [$location]}}' |
  curl -fsS -H @<(echo "Authorization: Token ${NAUTOBOT_TOKEN:?}") -H 'Content-Type: application/json' -d @- "${server%/}/api/graphql/" |
  jq -n --arg location "$1" --slurpfile old "$old" '
    def plain: tostring | gsub("[\\p{Cc}\\p{Cf}\\p{Zl}\\p{Zp}]"; "?"); # a terminal would obey some characters
    input | if .errors then error("Nautobot: \(.errors[0].message | plain)") else .data end
    | if (.devices | length) == 0 then error("no device is in \($location), or the token may not see any") else . end
    | (keys_unsorted[] as $list | select((.[$list] | length) == 0 and ($old[0][$list] | length) > 0)
      | error("Nautobot shows no \($list), and nautobot.json has some. If there are none any more, delete the file")), .
  ' >"$new" || { echo "export.sh: nautobot.json stays as it is: there is no complete answer" >&2; exit 1; }
chmod 644 "$new"
mv "$new" nautobot.json
