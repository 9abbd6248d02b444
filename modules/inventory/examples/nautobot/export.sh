#!/usr/bin/env bash
# export.sh LOCATION: saves what query.graphql asks of Nautobot in nautobot.json.
#
#   NAUTOBOT_URL=https://nautobot.example.com NAUTOBOT_TOKEN=... ./export.sh AMS01
#
# Commit the file: then a change in Nautobot reaches the machines after a review of the file and of the plan.
# Written for the GraphQL API of Nautobot 2.2 to 2.4. Needs curl and jq.
set -euo pipefail
cd "$(dirname "$0")"

# An answer may have errors and some of the data.
answer=$(
  jq -n --rawfile query query.graphql --arg location "$1" '{query: $query, variables: {location: [$location]}}' |
    curl -fsS -H @<(echo "Authorization: Token ${NAUTOBOT_TOKEN:?}") -H 'Content-Type: application/json' -d @- "${NAUTOBOT_URL:?}/api/graphql/" |
    jq 'if .errors then error("Nautobot: \(.errors[0].message)") else .data end'
)
echo "$answer" >nautobot.json
