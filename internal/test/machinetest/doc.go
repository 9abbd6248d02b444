// Package machinetest has the tests of tools/test-metal: the provider, a real Ironic, and machines that boot. Each machine is a virtual one
// of QEMU behind a BMC with Redfish or IPMI. It boots Ironic's ramdisk, from virtual media or the network, and images that report what they
// find (see tools/metal).
package machinetest
