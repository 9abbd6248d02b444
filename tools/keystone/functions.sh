# Functions of tools/ironic-up for an Ironic behind a Keystone. It sources this file; die, launch, free_port and the like are its own.
# shellcheck shell=bash disable=SC2154

keystone_tools=$(dirname "$(realpath "${BASH_SOURCE[0]}")")
keystone=    # the directory of Keystone, which METAL_KEYSTONE_DIR names
identity=    # the address of Keystone

# install_keystone installs Debian 12's Keystone. It runs on the machine itself, wherever Ironic runs.
install_keystone() {
  grep -q '^VERSION_CODENAME=bookworm' /etc/os-release || die "Keystone is that of Debian 12, and this is another system"
  # The package keystone would configure a server; python3-keystone has the program.
  [ -x /usr/bin/keystone-manage ] && [ -e /usr/lib/uwsgi/plugins/python3_plugin.so ] && command -v openssl > /dev/null ||
    apt_install python3-keystone uwsgi-plugin-python3 python3-pymysql openssl
}

keystone_configuration() { # EXPIRATION
  cat << END
[DEFAULT]
use_stderr = true
[credential]
key_repository = $keystone/credential
[database]
connection = mysql+pymysql://root@localhost/identity?unix_socket=$dir/mariadb/socket
[fernet_tokens]
key_repository = $keystone/fernet
[identity]
password_hash_rounds = 4
[oslo_policy]
enforce_new_defaults = true
enforce_scope = true
[token]
expiration = $1
END
}

# serve_keystone starts a Keystone and puts its address into $url.
serve_keystone() { # NAME EXPIRATION PROCESSES
  free_port
  keystone_configuration "$2" > "$keystone/$1.conf"
  # Debian's Keystone needs uwsgi's router, which closes each connection (reference/keystone.md#running-keystone).
  OS_KEYSTONE_CONFIG_FILES=$keystone/$1.conf launch "$dir/$1.log" uwsgi --plugin http,python3 --http "127.0.0.1:$port" --http-auto-chunked \
    --add-header 'Connection: close' --wsgi-file /usr/bin/keystone-wsgi-public --master --processes "$3" --enable-threads --lazy-apps \
    --die-on-term --buffer-size 65535
  url=http://127.0.0.1:$port/v3
  wait_for "Keystone $1" "$dir/$1.log" "$http" GET "$url"
}

# start_keystone starts a Keystone with users and projects (see seed), and one more, whose tokens last seconds.
start_keystone() {
  keystone=$dir/site
  mkdir "$keystone"
  mkdir -m 700 "$keystone"/{fernet,credential}
  keystone_configuration 3600 > "$keystone/keystone.conf"
  local manage=(keystone-manage --config-file "$keystone/keystone.conf")
  {
    "${manage[@]}" db_sync && "${manage[@]}" fernet_setup --keystone-user root --keystone-group root &&
      "${manage[@]}" credential_setup --keystone-user root --keystone-group root && "${manage[@]}" bootstrap --bootstrap-password admin
  } > "$dir/keystone-manage.log" 2>&1 || { tail -n 40 "$dir/keystone-manage.log" >&2; die "cannot make the database of Keystone"; }
  serve_keystone keystone 3600 2
  identity=$url
  serve_keystone brief "${TOKEN_EXPIRATION:-12}" 1
  export METAL_KEYSTONE_DIR=$keystone METAL_KEYSTONE_URL=$identity METAL_KEYSTONE_BRIEF_URL=$url
}

# ironic_behind_keystone prints what ironic.conf has for an Ironic behind a Keystone. The policy of Ironic keystone is that of Ironic 21.4 and
# newer; legacy accepts what older ones did. Rules in policy.yaml take effect at once.
ironic_behind_keystone() { # DIR NAME
  local new=true
  [ "$2" = keystone ] || new=false
  echo '{}' > "$keystone/$2-policy.yaml"
  chmod 644 "$keystone/$2-policy.yaml"
  cat << END
[keystone_authtoken]
auth_type = password
auth_url = $identity
password = ironic
project_domain_name = Default
project_name = service
service_token_roles = service
service_token_roles_required = true
token_cache_time = 5
user_domain_name = Default
username = ironic
www_authenticate_uri = $identity
[oslo_policy]
enforce_new_defaults = $new
enforce_scope = $new
policy_file = ${1%/*}/site/$2-policy.yaml
END
}

# secure puts TLS in front of a server on this machine, with a certificate of the site's own authority, and its address into $url.
secure() { # URL
  local target=${1#http://}
  free_port
  launch "$dir/tls-$port.log" python3 "$keystone_tools/tls" "$port" "${target%%/*}" "$keystone/server.pem" "$keystone/server.key"
  url=https://localhost:$port${target#"${target%%/*}"}
}

# finish_keystone makes what needs the addresses of the Ironics: certificates, the catalog, users, openrc files and clouds.yaml. It puts
# a token of the whole system into $token.
finish_keystone() {
  (
    cd "$keystone"
    openssl req -x509 -newkey rsa:2048 -nodes -keyout ca.key -out ca.pem -days 30 -subj '/CN=authority of the tests'
    openssl req -newkey rsa:2048 -nodes -keyout server.key -out server.csr -subj /CN=localhost
    openssl x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 30 -out server.pem -extfile <(echo 'subjectAltName=DNS:localhost,IP:127.0.0.1')
  ) > "$dir/openssl.log" 2>&1 || { cat "$dir/openssl.log" >&2; die "cannot make certificates"; }
  secure "$identity"; export METAL_KEYSTONE_TLS_URL=$url
  secure "$METAL_KEYSTONE_IRONIC"; export METAL_KEYSTONE_IRONIC_TLS=$url
  token=$(python3 "$keystone_tools/seed" 2> "$dir/seed.log") || { tail -n 20 "$dir/seed.log" >&2; die "cannot make users and catalog"; }
}
