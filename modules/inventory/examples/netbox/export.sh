#!/usr/bin/env bash
# export.sh DEVICES PREFIXES: saves what main.tf needs of NetBox in the directory netbox. The arguments are filters of NetBox's API:
#
#   NETBOX_URL=https://netbox.example.com NETBOX_TOKEN=... ./export.sh 'site=ams1&tag=ironic' 'site=ams1'
#
# NetBox ignores a filter that it does not know, and answers with all objects: read the files.
# Commit the files: then a change in NetBox reaches the machines after a review of the files and of the plan.
# The token goes to NETBOX_URL only. The files stay as they are unless all lists are complete.
# Written for the REST API of NetBox 4.2 to 4.6. Needs curl and jq.
set -euo pipefail
cd "$(dirname "$0")"
new=$(mktemp -d .export.XXXXXX) # here, so that mv replaces files at once
trap 'rm -rf "$new"' EXIT
server=${NETBOX_URL:?}
server=${server%/}

stop() {
  echo "export.sh: $*" >&2
  exit 1
}

# Tokens of version 2 begin with nbt_, and have another scheme.
case ${NETBOX_TOKEN:?} in nbt_*) scheme=Bearer ;; *) scheme=Token ;; esac

# list PATH FILTER FIELDS: all objects that match, one a line. It fails if it does not get as many as NetBox counts.
list() {
  local start="$server/api/$1/?" next="$server/api/$1/?$2&fields=$3&limit=500&ordering=id" page count=0 got=0 more
  while [ "$next" != null ]; do
    [ "${next#"$start"}" != "$next" ] ||
      stop "the next page of $1 is not at $start but at $(LC_ALL=C tr -cd '[:print:]' <<<"${next%%\?*}")." \
        "Set NETBOX_URL to the address that NetBox has for itself"
    page=$(curl -fsS -H @<(echo "Authorization: $scheme $NETBOX_TOKEN") -H 'Accept: application/json' "$next")
    jq -ne 'input | (.results | type == "array") and (.count | type == "number")' <<<"$page" >/dev/null ||
      stop "$server does not answer like NetBox"
    jq -c '.results[]' <<<"$page"
    count=$(jq .count <<<"$page")
    more=$(jq '.results | length' <<<"$page")
    got=$((got + more))
    next=$(jq -r .next <<<"$page")
    [ "$more" != 0 ] || break # such pages would never end
  done
  [ "$got" = "$count" ] || stop "$1 changed during the export: $got of $count objects"
}

list dcim/devices "$1" id,name,device_type,role,serial,asset_tag,site,rack,position,status,primary_ip4,primary_ip6,oob_ip,tags >"$new/devices"
[ -s "$new/devices" ] || stop "no device matches $1, or the token may not see any"
list ipam/prefixes "$2" id,prefix,vlan,custom_fields >"$new/prefixes"
touch "$new/interfaces" "$new/ip-addresses"
filters=$(jq -r '"device_id=\(.id)"' "$new/devices" | xargs -n 50 | tr ' ' '&') # servers limit the length of a URL
for filter in $filters; do
  list dcim/interfaces "$filter" id,device,name,type,enabled,parent,lag,mtu,mac_address,mgmt_only,untagged_vlan,tagged_vlans >>"$new/interfaces"
  list ipam/ip-addresses "$filter" id,address,status,role,assigned_object_type,assigned_object_id >>"$new/ip-addresses"
done

mkdir -p netbox
for file in devices prefixes interfaces ip-addresses; do
  [ -s "$new/$file" ] || ! jq -e 'length > 0' "netbox/$file.json" >/dev/null 2>&1 ||
    stop "NetBox shows no $file, and netbox/$file.json has some. The token may not see them." \
      "If there are none any more, delete the file"
  { echo '['; sed '$!s/$/,/' "$new/$file"; echo ']'; } >"$new/$file.json" # a list with one object a line
done
for file in devices prefixes interfaces ip-addresses; do
  mv "$new/$file.json" netbox/
done
