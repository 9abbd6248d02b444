package main

import (
	"context"
	"errors"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
)

// installCLI installs Debian's baremetal if it is absent. That needs root.
func installCLI(ctx context.Context, _ string) error {
	return installPython(ctx, "import ironicclient", "python3-ironicclient")
}

// baremetal runs the commands of baremetal.txt, without authentication. The fake has to answer as an Ironic of its version did, as
// testdata has it; a real one writes that.
func baremetal(ctx context.Context, _ string, v version) (*results, error) {
	s, err := startSite(ctx, v, &fakeironic.Server{}, false)
	if err != nil {
		return nil, err
	}
	args := []string{
		"-W", "ignore", "clients/baremetal.py", s.ironic, "clients/baremetal.txt", "clients/testdata/baremetal-" + v.ironic + ".txt",
	}
	if v.real != "" {
		args = append(args, "write")
	}
	all := &results{outcomes: map[string]string{}}
	err = all.test(ctx, "", nil, python, args...)
	return all, errors.Join(err, s.stop())
}
