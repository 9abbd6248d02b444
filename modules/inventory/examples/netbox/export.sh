#!/usr/bin/env bash
# export.sh DEVICES PREFIXES: saves what main.tf needs of NetBox in the directory netbox. The arguments are filters of NetBox's API:
#
#   NETBOX_URL=https://netbox.example.com NETBOX_TOKEN=... ./export.sh 'site=ams1&tag=ironic' 'site=ams1'
#
# NetBox ignores a filter that it does not know, and answers with all objects: read the files.
# Commit the files: then a change in NetBox reaches the machines after a review of the files and of the plan.
# Written for the REST API of NetBox 4.2 to 4.6. Needs curl and jq.
set -euo pipefail
cd "$(dirname "$0")"
new=$(mktemp -d)
trap 'rm -rf "$new"' EXIT

# Tokens of version 2 begin with nbt_, and have another scheme.
case ${NETBOX_TOKEN:?} in nbt_*) scheme=Bearer ;; *) scheme=Token ;; esac

# list PATH FILTER FIELDS: all objects that match, one a line. It fails if it does not get as many as NetBox counts.
list() {
  local next="${NETBOX_URL:?}/api/$1/?$2&fields=$3&limit=500&ordering=id" page count=0 got=0
  while [ "$next" != null ]; do
    page=$(curl -fsS -H @<(echo "Authorization: $scheme $NETBOX_TOKEN") -H 'Accept: application/json' "$next")
    jq -c '.results[]' <<<"$page"
    count=$(jq .count <<<"$page")
    got=$((got + $(jq '.results | length' <<<"$page")))
    next=$(jq -r .next <<<"$page")
  done
  [ "$got" = "$count" ] || { echo "export.sh: $1 changed during the export: $got of $count objects" >&2; exit 1; }
}

list dcim/devices "$1" id,name,device_type,role,serial,asset_tag,site,rack,position,status,primary_ip4,primary_ip6,oob_ip,tags >"$new/devices"
[ -s "$new/devices" ] || { echo "export.sh: no device matches $1, or the token may not see any" >&2; exit 1; }
list ipam/prefixes "$2" id,prefix,vlan,custom_fields >"$new/prefixes"
touch "$new/interfaces" "$new/ip-addresses"
for filter in $(jq -r '"device_id=\(.id)"' "$new/devices" | xargs -n 50 | tr ' ' '&'); do # servers limit the length of a URL
  list dcim/interfaces "$filter" id,device,name,type,enabled,parent,lag,mtu,mac_address,mgmt_only,untagged_vlan,tagged_vlans >>"$new/interfaces"
  list ipam/ip-addresses "$filter" id,address,status,role,assigned_object_type,assigned_object_id >>"$new/ip-addresses"
done

mkdir -p netbox
for file in devices prefixes interfaces ip-addresses; do # a list with one object a line
  { echo '['; sed '$!s/$/,/' "$new/$file"; echo ']'; } >"netbox/$file.json"
done
