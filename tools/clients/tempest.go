package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakekeystone"
)

// tempestTests are the tests of Ironic's API that ironic-tempest-plugin brings.
const tempestTests = "ironic_tempest_plugin.tests.api.admin"

// installTempest installs Debian's ironic-tempest-plugin if it is absent. That needs root.
func installTempest(ctx context.Context, _ string) error {
	return installPython(ctx, "import tempest, ironic_tempest_plugin", "python3-tempest", "ironic-tempest-plugin")
}

// tempestConfig has verbs for a directory, the addresses of Keystone, and the highest version of the API.
const tempestConfig = `[auth]
use_dynamic_credentials = false
test_accounts_file = %[1]s/accounts.yaml
[identity]
uri_v3 = %[2]s/v3
auth_version = v3
region = north
[oslo_concurrency]
lock_path = %[1]s
[service_available]
ironic = true
nova = false
neutron = false
glance = false
cinder = false
swift = false
[enforce_scope]
ironic = true
[baremetal]
driver = fake-hardware
max_microversion = %[3]s
enabled_drivers = fake-hardware
enabled_hardware_types = fake-hardware
`

// tempest runs the tests behind Keystone, as the admin of the system.
func tempest(ctx context.Context, dir string, v version) (*results, error) {
	s, err := startSite(ctx, v, &fakeironic.Server{}, true)
	if err != nil {
		return nil, err
	}
	// Each class of tests takes two admins.
	account := "- {username: %s, password: %s, user_domain_name: Default, roles: [admin], system: all}\n"
	accounts := fmt.Sprintf(account, "sys-admin", fakekeystone.Password) + fmt.Sprintf(account, secondAdmin, fakekeystone.Password)
	config := fmt.Sprintf(tempestConfig, dir, s.keystone, v.api)
	all := &results{outcomes: map[string]string{}}
	err = errors.Join(os.WriteFile(filepath.Join(dir, "accounts.yaml"), []byte(accounts), 0o600),
		os.WriteFile(filepath.Join(dir, "tempest.conf"), []byte(config), 0o600))
	tests := []string(nil)
	if err == nil {
		tests, err = modules(ctx, tempestTests)
	}
	if err == nil {
		env := []string{"TEMPEST_CONFIG_DIR=" + dir, "TEMPEST_CONFIG=tempest.conf", "OS_TEST_TIMEOUT=60"}
		err = all.test(ctx, "", env, python, append([]string{"-W", "ignore", "-m", "unittest", "-v"}, tests...)...)
	}
	return all, errors.Join(err, s.stop())
}

// installPython installs Debian's packages unless a program in Python can import what it needs.
func installPython(ctx context.Context, needs string, packages ...string) error {
	if exec.CommandContext(ctx, python, "-c", needs).Run() == nil {
		return nil
	}
	install := exec.CommandContext(ctx, "sh", append([]string{
		"-c", `apt-get update -q && apt-get install -qy --no-install-recommends "$@"`, "sh",
	}, packages...)...)
	install.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
	install.Stderr = os.Stderr
	return install.Run()
}
