"""Says what cloud-init and Ironic's schema make of network data.

Arguments: directories with the libraries of cloud-init. Standard input: a JSON list of {"data": network data, "macs": {MAC: device}}.
Standard output: the version of cloud-init, the bond modes of Ironic's schema, and for each element {"refused": the schema's error,
"broken": what cloud-init raised, "netplan": the file of netplan, "files": {renderer: {path: text}}}.
"""
import copy
import json
import logging
import os
import sys
import tempfile

sys.path[:0] = sys.argv[1:]
logging.disable(logging.CRITICAL)

import jsonschema
import yaml

import ironic
from cloudinit import version
from cloudinit.config import schema
from cloudinit.net import eni, netplan, network_manager, network_state, networkd, sysconfig
from cloudinit.sources.helpers import openstack

with open(os.path.join(os.path.dirname(ironic.__file__), "api/controllers/v1/network-data-schema.json")) as f:
    SCHEMA = json.load(f)
VALIDATOR = jsonschema.Draft7Validator(SCHEMA)

SCRIPTS = "%(base)s/network-scripts/"
RENDERERS = {
    "netplan": (netplan, {"netplan_path": "etc/netplan/50.yaml", "postcmds": False}),
    "eni": (eni, {"eni_path": "etc/network/interfaces", "netrules_path": None}),
    "sysconfig": (sysconfig, {
        "control": "etc/sysconfig/network", "iface_templates": SCRIPTS + "ifcfg-%(name)s",
        "route_templates": {"ipv4": SCRIPTS + "route-%(name)s", "ipv6": SCRIPTS + "route6-%(name)s"},
    }),
    "network-manager": (network_manager, {}),
    "networkd": (networkd, {"network_conf_dir": "/etc/systemd/network/", "resolve_conf_fn": "etc/resolved.conf"}),
}


def render(state, name):
    module, settings = RENDERERS[name]
    files = {}
    with tempfile.TemporaryDirectory() as root:
        module.Renderer(settings).render_network_state(copy.deepcopy(state), target=root)  # it may change the state
        for at, _, names in os.walk(root):
            for file in names:
                path = os.path.join(at, file)
                with open(path) as f:
                    files[os.path.relpath(path, root)] = f.read()
    return files


def read(data, macs):
    result = {"refused": "", "broken": "", "netplan": None, "files": {}}
    for error in VALIDATOR.iter_errors(data):
        result["refused"] = error.message
    try:
        config = openstack.convert_net_json(data, known_macs=macs)
        if hasattr(schema, "SchemaType"):
            schema.validate_cloudconfig_schema(config=config, schema_type=schema.SchemaType.NETWORK_CONFIG_V1, strict=True)
        state = network_state.parse_net_config_data(config, skip_broken=False)
        for name in RENDERERS:
            result["files"][name] = render(state, name)
        result["netplan"] = yaml.safe_load(result["files"].pop("netplan")["etc/netplan/50.yaml"])
    except Exception as e:
        result["broken"] = "%s: %s" % (type(e).__name__, e)
    return result


json.dump({
    "cloud_init": version.version_string(),
    "bond_modes": SCHEMA["definitions"]["l2_bond"]["properties"]["bond_mode"]["enum"],
    "results": [read(one["data"], one["macs"]) for one in json.load(sys.stdin)],
}, sys.stdout)
