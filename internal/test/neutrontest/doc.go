// Package neutrontest has the tests of VIFs: beside a real Neutron (see tools/test-neutron), else on the fake as Ironic 21.4 and 39.
package neutrontest
