package neutrontest_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/bmc"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

// A machine is connected when it is deployed, stays so when it gets another live ISO, gets another VIF while it runs, and is disconnected
// when it is destroyed.
func TestNeutron_lifeOfAConnection(t *testing.T) {
	everywhere(t, func(t *testing.T, o *openstack) {
		node, iso := o.node(), bmc.ServeISO(t)
		first, second := o.vif(), o.vif()
		w, destroy := o.workspace(o.live(node, iso, "v1", vifs(first)))
		defer destroy()
		acctest.NeverMention(t, w.Must(acctest.Apply()...), "Warning")
		o.wantVIFs(node, first)
		o.wantBound(first, node, o.MAC(1))
		acctest.NoChanges(t, w)

		w.Configure(o.live(node, iso, "v2", vifs(first)))
		w.Must(acctest.Apply()...)
		if o.legacy {
			site.WantVerbs(t, o.Site, node, "active", "rebuild")
		} else {
			site.WantVerbs(t, o.Site, node, "active", "deleted", "active")
		}
		o.wantVIFs(node, first)
		o.wantBound(first, node, o.MAC(1))
		acctest.NoChanges(t, w)

		w.Configure(o.live(node, iso, "v2", vifs(second))) // the same port, while the machine runs
		w.Must(acctest.Apply()...)
		o.wantVIFs(node, second)
		o.wantBound(second, node, o.MAC(1))
		o.wantFree(first)
		acctest.NoChanges(t, w)

		w.Must("destroy", "-auto-approve")
		o.wantVIFs(node)
		o.wantFree(second)
	})
}

// A VIF goes to the port of its physical network, and to the port that the configuration names.
func TestNeutron_choosesThePort(t *testing.T) {
	everywhere(t, func(t *testing.T, o *openstack) {
		node, iso := o.node(), bmc.ServeISO(t)
		here, elsewhere := o.vif(), o.vifElsewhere()
		w, destroy := o.workspace(o.live(node, iso, "v1", vifs(elsewhere, here)))
		defer destroy()
		w.Must(acctest.Apply()...)
		o.wantBound(here, node, o.MAC(1))
		o.wantBound(elsewhere, node, o.MAC(2))
		acctest.NoChanges(t, w)
		w.Must("destroy", "-auto-approve")

		wrong := `vifs = [{ id = ` + acctest.Quoted(elsewhere) + `, mac = ` + acctest.Quoted(o.MAC(1)) + ` }]`
		w.Configure(o.live(node, iso, "v1", wrong))
		acctest.Fails(t, w, acctest.Apply(), "VIF "+elsewhere, "not enough free physical ports", "A port with another physical_network")
		o.wantVIFs(node)
	})
}

// A rebuild leaves the machine connected.
func TestNeutron_rebuild(t *testing.T) {
	everywhere(t, func(t *testing.T, o *openstack) {
		node, vif := o.node(map[string]any{"deploy_interface": "ramdisk"}), o.vif()
		w, destroy := o.workspace(o.partition(node, "one", vifs(vif)))
		defer destroy()
		w.Must(acctest.Apply()...)
		o.wantBound(vif, node, o.MAC(1))
		w.Configure(o.partition(node, "two", vifs(vif)))
		w.Must(acctest.Apply()...)
		site.WantVerbs(t, o.Site, node, "active", "rebuild")
		o.wantVIFs(node, vif)
		o.wantBound(vif, node, o.MAC(1))
		acctest.NoChanges(t, w)
	})
}

// partition returns the configuration of a deployment of a kernel with a ramdisk, which Ironic can rebuild.
func (o *openstack) partition(node, version string, settings ...string) string {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(version)) }))
	o.t.Cleanup(server.Close)
	image := "image = {\n    url = " + acctest.Quoted(server.URL+"/image") + "\n    checksum = " +
		acctest.Quoted(strings.Repeat("a1", 32)) +
		"\n    disk_format = \"raw\"\n    type = \"partition\"\n    root_gb = 1\n    kernel = " + acctest.Quoted(server.URL+"/kernel") +
		"\n    ramdisk = " + acctest.Quoted(server.URL+"/ramdisk") + "\n  }"
	return o.Provider() + acctest.Deployment(acctest.Quoted(node), append(settings, image)...)
}

// A VIF that Neutron does not know is refused with advice, and leaves nothing behind.
func TestNeutron_unknownVIF(t *testing.T) {
	everywhere(t, func(t *testing.T, o *openstack) {
		node, iso, known := o.node(), bmc.ServeISO(t), o.vif()
		unknown := "00000000-0000-4000-8000-000000000001"
		w, destroy := o.workspace(o.live(node, iso, "v1", vifs(known, unknown)))
		defer destroy()
		acctest.Fails(t, w, acctest.Apply(), "Could not deploy node "+o.Name("n1"), "VIF "+unknown, "Correct its ID in vifs, or remove it")
		w.Configure(o.live(node, iso, "v1", vifs(known)))
		w.Must(acctest.Apply()...)
		o.wantVIFs(node, known)
		o.wantBound(known, node, o.MAC(1))
	})
}

// Ironic does not learn that Neutron has deleted a port. The deployment that fails for it says which one it is, and removing it from vifs
// mends the machine.
func TestNeutron_deletedVIF(t *testing.T) {
	everywhere(t, func(t *testing.T, o *openstack) {
		node, kept, deleted := o.node(map[string]any{"deploy_interface": "ramdisk"}), o.vif(), o.vifElsewhere()
		w, destroy := o.workspace(o.partition(node, "one", vifs(kept, deleted)))
		defer destroy()
		w.Must(acctest.Apply()...)
		o.wantBound(deleted, node, o.MAC(2))
		o.deleteVIF(deleted)
		acctest.NoDrift(t, w) // Ironic still lists it
		w.Configure(o.partition(node, "two", vifs(kept, deleted)))
		acctest.Fails(t, w, acctest.Apply(), "Neutron has deleted the port "+deleted, "remove it there, or name another port")
		w.Configure(o.partition(node, "two", vifs(kept)))
		w.Must(acctest.Apply()...)
		o.wantVIFs(node, kept)
		o.wantBound(kept, node, o.MAC(1))
		acctest.NoChanges(t, w)
	})
}

// A new live ISO boots although Neutron has deleted a port that the configuration does not name, and says which one if it does.
func TestNeutron_deletedBeforeTheNextISO(t *testing.T) {
	everywhere(t, func(t *testing.T, o *openstack) {
		node, iso, kept, deleted := o.node(), bmc.ServeISO(t), o.vif(), o.vifElsewhere()
		w, destroy := o.workspace(o.live(node, iso, "v1", vifs(kept)))
		defer destroy()
		w.Must(acctest.Apply()...)
		o.Must(http.MethodPost, "nodes/"+node+"/vifs", map[string]any{"id": deleted}) // another client
		o.deleteVIF(deleted)
		w.Configure(o.live(node, iso, "v2", vifs(kept)))
		if o.legacy { // rebuilds the machine, which keeps its VIFs
			acctest.Fails(t, w, acctest.Apply(), "Neutron has deleted the port "+deleted, "apply again, which detaches it")
		}
		w.Must(acctest.Apply()...)
		o.wantVIFs(node, kept)
		o.wantBound(kept, node, o.MAC(1))

		o.deleteVIF(kept)
		w.Configure(o.live(node, iso, "v3", vifs(kept)))
		acctest.Fails(t, w, acctest.Apply(), "ort "+kept, "vifs")
		next := o.vif()
		w.Configure(o.live(node, iso, "v3", vifs(next)))
		w.Must(acctest.Apply()...)
		o.wantVIFs(node, next)
		o.wantBound(next, node, o.MAC(1))
	})
}

// A port that was detached while nothing ran on the machine keeps its MAC address, so that Neutron gives it to no other port of the
// network. The error says so, and the apply works once that port is gone.
func TestNeutron_anotherVIFOfTheSameNetwork(t *testing.T) {
	everywhere(t, func(t *testing.T, o *openstack) {
		node, iso, former, next := o.node(), bmc.ServeISO(t), o.vif(), o.vif()
		o.Must(http.MethodPost, "nodes/"+node+"/vifs", map[string]any{"id": former})
		o.Must(http.MethodDelete, "nodes/"+node+"/vifs/"+former, nil)
		w, destroy := o.workspace(o.live(node, iso, "v1", vifs(next)))
		defer destroy()
		if o.legacy {
			acctest.Fails(t, w, acctest.Apply(), "VIF "+next, "a port that was detached while nothing ran on the machine "+
				"keeps that address")
			o.deleteVIF(former)
		}
		w.Must(acctest.Apply()...)
		o.wantVIFs(node, next)
		o.wantBound(next, node, o.MAC(1))
	})
}

// A machine without a VIF is deployed without a network by the network interface flat of Ironic 21.4. Every other deployment fails, and
// says what to do.
func TestNeutron_noVIF(t *testing.T) {
	everywhere(t, func(t *testing.T, o *openstack) {
		node, iso := o.node(), bmc.ServeISO(t)
		w, destroy := o.workspace(o.live(node, iso, "v1"))
		defer destroy()
		if o.legacy && o.network == "flat" {
			w.Must(acctest.Apply()...)
			return
		}
		acctest.Fails(t, w, acctest.Apply(), "The machine has no VIF", "Set vifs of the metal_deployment")
		vif := o.vif()
		w.Configure(o.live(node, iso, "v1", vifs(vif)))
		w.Must(acctest.Apply()...)
		o.wantBound(vif, node, o.MAC(1))
	})
}

// Without local_link_connection, the network interface neutron has no port for a VIF. The error says so.
func TestNeutron_portWithoutSwitch(t *testing.T) {
	everywhere(t, func(t *testing.T, o *openstack) {
		node, iso, vif := o.node(), bmc.ServeISO(t), o.vif()
		o.Must(http.MethodPost, "ports", map[string]any{"node_uuid": node, "address": o.MAC(3), "pxe_enabled": false})
		named := `vifs = [{ id = ` + acctest.Quoted(vif) + `, mac = ` + acctest.Quoted(o.MAC(3)) + ` }]`
		w, destroy := o.workspace(o.live(node, iso, "v1", named))
		defer destroy()
		if o.network == "flat" {
			w.Must(acctest.Apply()...)
			o.wantBound(vif, node, o.MAC(3))
			return
		}
		acctest.Fails(t, w, acctest.Apply(), "port "+o.MAC(3)+" of node "+o.Name("n1"), "has no local_link_connection")
		o.wantVIFs(node)
	})
}

// A switch that does not answer fails the deployment since Ironic 39, also that of a machine that runs, and the VIF does not stay half
// attached.
func TestNeutron_switchRefuses(t *testing.T) {
	everywhere(t, func(t *testing.T, o *openstack) {
		if o.network == "flat" {
			return // configures no switch
		}
		node, iso, good, bad := o.node(), bmc.ServeISO(t), o.vif(), o.vif()
		o.Must(http.MethodPost, "ports", map[string]any{
			"node_uuid": node, "address": o.MAC(3), "pxe_enabled": false,
			"local_link_connection": map[string]any{"switch_id": "00:00:00:00:00:02", "port_id": "Eth1", "switch_info": "refuse"},
		})
		atBad := `{ id = ` + acctest.Quoted(bad) + `, mac = ` + acctest.Quoted(o.MAC(3)) + ` }`
		w, destroy := o.workspace(o.live(node, iso, "v1", vifs(good)))
		defer destroy()
		w.Must(acctest.Apply()...)
		w.Configure(o.live(node, iso, "v1", `vifs = [{ id = `+acctest.Quoted(good)+` }, `+atBad+`]`))
		if o.legacy {
			w.Must(acctest.Apply()...)
			return
		}
		acctest.Fails(t, w, acctest.Apply(), "VIF "+bad, "Neutron's driver of the switch has not connected the port")
		o.wantVIFs(node, good)
		w.Must("destroy", "-auto-approve")
		w.Configure(o.live(node, iso, "v1", `vifs = [`+atBad+`]`))
		acctest.Fails(t, w, acctest.Apply(), "Neutron's driver of the switch has not connected the machine's port")
	})
}
