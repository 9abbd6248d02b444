// Package dist tests the files of a release as the registries and their users read them. tools/test-release makes them, and names their
// directory in METAL_DIST.
package dist
