package acctest

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6/tf6server"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/provider"
)

// reattach is how Terraform is told of a provider that runs already.
type reattach struct {
	Protocol        string
	ProtocolVersion int
	Pid             int
	Test            bool
	Addr            struct{ Network, String string }
}

// serve serves a new provider in this process, in an environment. It returns the value of TF_REATTACH_PROVIDERS with which a CLI finds it,
// also under further addresses, and a function that ends the provider.
func serve(t *testing.T, environ, further []string) (attach string, end func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	server := provider.NewServerIn("test", environ, nil)
	configs, closed, failed := make(chan *plugin.ReattachConfig, 1), make(chan struct{}), make(chan error, 1)
	go func() {
		failed <- tf6server.Serve(provider.Address, func() tfprotov6.ProviderServer { return server },
			tf6server.WithDebug(ctx, configs, closed), tf6server.WithGoPluginLogger(hclog.NewNullLogger()), tf6server.WithLoggingSink(t))
	}()
	var config *plugin.ReattachConfig
	select {
	case config = <-configs:
	case err := <-failed:
		cancel()
		t.Fatal(errors.Join(errors.New("the provider does not start"), err))
	}
	r := reattach{Protocol: string(config.Protocol), ProtocolVersion: config.ProtocolVersion, Pid: os.Getpid(), Test: true}
	r.Addr.Network, r.Addr.String = config.Addr.Network(), config.Addr.String()
	addresses := map[string]reattach{
		"registry.terraform.io/terraform-provider-metal/metal": r,
		"registry.opentofu.org/terraform-provider-metal/metal": r,
	}
	for _, address := range further {
		addresses[address] = r
	}
	text, err := json.Marshal(addresses)
	if err != nil {
		t.Fatal(err)
	}
	return string(text), func() {
		cancel()
		<-closed
		server.Close(context.WithoutCancel(ctx))
	}
}
