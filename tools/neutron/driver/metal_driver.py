from neutron_lib import constants
from neutron_lib.api.definitions import portbindings
from neutron_lib.plugins.ml2 import api


class Driver(api.MechanismDriver):
    """Binds ports of bare metal, as a driver of switches does, without an agent and without a switch.

    A switch whose switch_info is "refuse" does not answer: its ports stay unbound.
    """

    @property
    def connectivity(self):
        return portbindings.CONNECTIVITY_L2

    def initialize(self):
        pass

    def bind_port(self, context):
        port = context.current
        links = port['binding:profile'].get('local_link_information') or []
        if port['binding:vnic_type'] != 'baremetal' or any(link.get('switch_info') == 'refuse' for link in links):
            return
        for segment in context.segments_to_bind:
            context.set_binding(segment[api.ID], portbindings.VIF_TYPE_OTHER, {}, constants.PORT_STATUS_ACTIVE)
            return
