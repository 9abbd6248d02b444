package main

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakekeystone"
)

// acceptance are gophercloud's acceptance tests, of the version that go.mod has.
const acceptance = "github.com/gophercloud/gophercloud/v2/internal/acceptance/openstack/baremetal/"

// acceptanceKinds are their packages: behind Keystone, without authentication, and with http_basic.
var acceptanceKinds = []string{"v1", "noauth", "httpbasic"}

// buildGophercloud builds the tests. To link them takes longer than to run them.
func buildGophercloud(ctx context.Context, dir string) error {
	args := []string{"test", "-C", "..", "-tags", "acceptance", "-vet=off", "-ldflags", "-s -w", "-c", "-o", dir + "/"}
	for _, kind := range acceptanceKinds {
		args = append(args, acceptance+kind)
	}
	build := exec.CommandContext(ctx, "go", args...)
	build.Stdout, build.Stderr = os.Stderr, os.Stderr
	return build.Run()
}

// gophercloud runs the tests on a fake of a version.
func gophercloud(ctx context.Context, dir string, v version) (*results, error) {
	all := &results{outcomes: map[string]string{}}
	for _, kind := range acceptanceKinds {
		ironic := &fakeironic.Server{}
		if kind == "httpbasic" {
			ironic.Username, ironic.Password = "admin", fakekeystone.Password
		}
		s, err := startSite(ctx, v, ironic, kind == "v1")
		if err != nil {
			return nil, err
		}
		env := []string{
			"OS_AUTH_URL=" + s.keystone + "/v3", "OS_USERNAME=admin", "OS_PASSWORD=" + fakekeystone.Password, "OS_REGION_NAME=north",
			"IRONIC_ENDPOINT=" + s.ironic + "/v1", "OS_BRANCH=" + v.release,
		}
		if kind == "v1" {
			env = append(env, "OS_USERNAME=sys-admin", "OS_SYSTEM_SCOPE=all", "OS_DOMAIN_ID=default")
		}
		err = all.test(ctx, kind+"/", env, filepath.Join(dir, kind+".test"), "-test.v", "-test.timeout=3m")
		if err := errors.Join(err, s.stop()); err != nil {
			return nil, err
		}
	}
	return all, nil
}
