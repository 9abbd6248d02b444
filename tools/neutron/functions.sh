# Functions of tools/ironic-up for an Ironic beside a Neutron. It sources this file; die, launch, free_port and the like are its own.
# shellcheck shell=bash disable=SC2154

neutron_tools=$(dirname "$(realpath "${BASH_SOURCE[0]}")")
networks=       # the address of Neutron
neutron_server= # its process

# install_neutron installs Neutron where Ironic is.
install_neutron() {
  [ -e "$root/usr/share/doc/neutron-common" ] && [ -e "$root/usr/share/doc/uwsgi-plugin-python3" ] || apt_install_beside neutron-common uwsgi-plugin-python3
}

# neutron_configuration prints neutron.conf. Without an agent and without RabbitMQ: see reference/neutron.md#running-neutron.
neutron_configuration() { # DIR PORT
  local paste=/etc/neutron/api-paste.ini
  [ -e "$root$paste" ] || paste=/usr/share/neutron-common/api-paste.ini
  cat << END
[DEFAULT]
api_paste_config = $paste
api_workers = 0
auth_strategy = noauth
bind_host = 127.0.0.1
bind_port = $2
core_plugin = ml2
dhcp_agent_notification = false
notify_nova_on_port_data_changes = false
notify_nova_on_port_status_changes = false
rpc_state_report_workers = 0
rpc_workers = 0
service_plugins = segments
state_path = $1/state
transport_url = fake://
use_stderr = true
wsgi_keep_alive = false
[database]
connection = mysql+pymysql://root@localhost/networks?unix_socket=${1%/*}/mariadb/socket
[ml2]
extension_drivers = port_security
mechanism_drivers = metal
tenant_network_types = vlan
type_drivers = flat,vlan
[ml2_type_flat]
flat_networks = *
[ml2_type_vlan]
network_vlan_ranges = physnet1:100:199,physnet2:200:299
[oslo_concurrency]
lock_path = $1/state/lock
[oslo_messaging_notifications]
driver = noop
[oslo_policy]
enforce_new_defaults = false
enforce_scope = false
[quotas]
default_quota = -1
quota_driver = neutron.db.quota.driver_nolock.DbQuotaNoLockDriver
quota_network = -1
quota_port = -1
quota_subnet = -1
END
}

# start_neutron starts a Neutron with the driver of this directory, and puts its address into $networks. It comes up while Ironic does.
start_neutron() {
  local inside=${dir#"$root"}/networks serve
  mkdir -p "$dir/networks/state"
  cp -r "$neutron_tools/driver" "$dir/networks/"
  free_port; networks=http://127.0.0.1:$port
  neutron_configuration "$inside" "$port" > "$dir/networks/neutron.conf"
  (within neutron-db-manage --config-file "$inside/neutron.conf" upgrade heads) > "$dir/neutron-dbsync.log" 2>&1 || {
    tail -n 40 "$dir/neutron-dbsync.log" >&2; die "cannot make the database of Neutron"; }
  serve=(neutron-server --config-file "$inside/neutron.conf")
  # Newer Neutrons have no server of their own.
  [ -x "$root/usr/bin/neutron-server" ] || serve=(uwsgi --plugins python3 --http-socket "127.0.0.1:$port" --master --die-on-term --no-orphans
    --lazy-apps --enable-threads --processes 1 --threads 4 --buffer-size 65535 --add-header 'Connection: close'
    --pyargv "--config-file=$inside/neutron.conf" --module neutron.wsgi.api:application)
  launch "$dir/neutron-server.log" within env "PYTHONPATH=$inside/driver" "${serve[@]}"
  neutron_server=${servers[-1]}
}

# ironic_beside_neutron prints what ironic.conf has for an Ironic beside a Neutron. Ironic looks for the networks when it needs them.
ironic_beside_neutron() { # API_PORT
  local network servicing=
  [ "$suite" = bookworm ] || servicing=servicing
  cat << END
[agent]
neutron_agent_max_attempts = 2
neutron_agent_status_retry_interval = 1
[neutron]
auth_type = none
endpoint_override = $networks
END
  for network in cleaning inspection provisioning rescuing $servicing; do echo "${network}_network = cleaning"; done
  printf '%s\n' '[service_catalog]' 'auth_type = none' "endpoint_override = http://127.0.0.1:$1"
}

# create_network creates a network with a subnet, and puts its ID into $network.
create_network() { # NAME TYPE PHYSICAL_NETWORK NUMBER
  network=$("$http" POST "$networks/v2.0/networks" \
    "{\"network\": {\"name\": \"$1\", \"provider:network_type\": \"$2\", \"provider:physical_network\": \"$3\"}}" | grep -o '"id": *"[^"]*"' | head -n 1 | cut -d '"' -f 4)
  [ -n "$network" ] || die "cannot create the network $1"
  "$http" POST "$networks/v2.0/subnets" "{\"subnet\": {\"network_id\": \"$network\", \"ip_version\": 4, \"cidr\": \"10.$4.0.0/16\", \"enable_dhcp\": false}}" > /dev/null ||
    die "cannot create the subnet of the network $1"
}

# finish_neutron waits for Neutron, and makes its networks.
finish_neutron() {
  local network
  watched=$neutron_server wait_for Neutron "$dir/neutron-server.log" "$http" GET "$networks/v2.0/networks"
  create_network cleaning flat physnet1 10
  create_network tenant vlan physnet1 11
  export METAL_NEUTRON_URL=$networks/v2.0 METAL_NEUTRON_NETWORK=$network
  create_network elsewhere vlan physnet2 12
  export METAL_NEUTRON_OTHER_NETWORK=$network
}
