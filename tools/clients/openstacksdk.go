package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
)

// python is Debian's Python, which has Debian's packages.
const python = "/usr/bin/python3"

// sdkTests are the functional tests that Debian's openstacksdk brings.
const sdkTests = "openstack.tests.functional.baremetal"

// installSDK installs Debian's openstacksdk, and what its tests need, if they are absent. That needs root.
func installSDK(ctx context.Context, _ string) error {
	return installPython(ctx, "import openstack, oslotest, requests_mock, ddt", "python3-openstacksdk", "python3-oslotest",
		"python3-requests-mock", "python3-ddt")
}

// modules returns the modules with tests in a package of Python.
func modules(ctx context.Context, of string) ([]string, error) {
	found, err := exec.CommandContext(ctx, python, "-W", "ignore", "-c", "import "+of+" as t, pkgutil\n"+
		"for m in pkgutil.iter_modules(t.__path__):\n  if m.name.startswith('test_'): print(t.__name__ + '.' + m.name)").Output()
	if err != nil {
		return nil, fmt.Errorf("find the tests: %w", err)
	}
	return strings.Fields(string(found)), nil
}

// openstacksdk runs openstacksdk's functional tests for baremetal, without authentication.
func openstacksdk(ctx context.Context, dir string, v version) (*results, error) {
	tests, err := modules(ctx, sdkTests)
	if err != nil {
		return nil, err
	}
	s, err := startSite(ctx, v, &fakeironic.Server{}, false)
	if err != nil {
		return nil, err
	}
	clouds := filepath.Join(dir, "clouds.yaml")
	err = os.WriteFile(clouds, fmt.Appendf(nil, "clouds:\n  fake: {auth_type: none, auth: {endpoint: %q},\n    "+
		"baremetal_endpoint_override: %[1]q, has_compute: false, has_image: false}\n", s.ironic), 0o600)
	all := &results{outcomes: map[string]string{}}
	if err == nil {
		env := []string{
			"OS_CLIENT_CONFIG_FILE=" + clouds, "OS_CLOUD=fake", "OPENSTACKSDK_DEMO_CLOUD=fake", "OPENSTACKSDK_DEMO_CLOUD_ALT=fake",
			"OPENSTACKSDK_OPERATOR_CLOUD=fake", "OS_TEST_TIMEOUT=60",
		}
		err = all.test(ctx, "", env, python, append([]string{"-W", "ignore", "-m", "unittest", "-v"}, tests...)...)
	}
	return all, errors.Join(err, s.stop())
}
