// Package keystonetest has the tests of the provider behind a real Keystone, in front of a real Ironic: see tools/test-keystone.
package keystonetest
