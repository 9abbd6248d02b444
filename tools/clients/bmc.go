package main

import (
	"context"
	_ "embed"
	"errors"
	"net"
	"os"
	"path/filepath"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakebmc"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakebmc/ipmi"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakehttp"
)

// bmcScript has what sushy and ipmitool do. They have no tests of their own that need a BMC.
//
//go:embed bmc.py
var bmcScript []byte

// installBMCClients installs Debian's sushy and ipmitool if they are absent. That needs root.
func installBMCClients(ctx context.Context, dir string) error {
	return errors.Join(
		installPython(ctx, "import sushy, shutil; assert shutil.which('ipmitool')", "python3-sushy", "ipmitool"),
		os.WriteFile(filepath.Join(dir, "bmc.py"), bmcScript, 0o600))
}

// bmcClient runs a class of the script on a BMC.
func bmcClient(class string) func(context.Context, string, version) (*results, error) {
	return func(ctx context.Context, dir string, _ version) (*results, error) {
		serving, cancel := context.WithCancel(ctx)
		defer cancel()
		var listen net.ListenConfig
		redfish, err := listen.Listen(ctx, "tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		conn, err := listen.ListenPacket(ctx, "udp", "127.0.0.1:0")
		if err != nil {
			return nil, errors.Join(err, redfish.Close())
		}
		fake := &fakebmc.Server{}
		bmc := fake.Add(fakebmc.Config{Name: "m1", Username: "admin", Password: "secret"})
		ended := make(chan error, 2)
		go func() { ended <- fakehttp.Serve(serving, fake, redfish) }()
		go func() { ended <- (&ipmi.Server{Fake: fake, BMC: bmc}).Serve(serving, conn) }()
		all := &results{outcomes: map[string]string{}}
		_, port, err := net.SplitHostPort(conn.LocalAddr().String())
		if err == nil {
			env := []string{"PYTHONPATH=" + dir, "REDFISH=http://" + redfish.Addr().String(), "IPMI_PORT=" + port}
			err = all.test(ctx, "", env, python, "-W", "ignore", "-m", "unittest", "-v", "bmc."+class)
		}
		cancel()
		return all, errors.Join(err, <-ended, <-ended)
	}
}
