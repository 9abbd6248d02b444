// Command instant is our provider with ReadResource and PlanResourceChange answered at once: nothing is asked of Ironic and no
// schema is walked. A plan with it costs what the CLI and the protocol cost.
package main

import (
	"context"
	"log"
	"os"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6/tf6server"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/provider"
)

func main() {
	if err := provider.Quiet(os.LookupEnv, os.Setenv); err != nil { // as in the provider's own main
		log.Fatal(err)
	}
	server := instant{provider.NewServer("bench")}
	if err := tf6server.Serve(provider.Address, func() tfprotov6.ProviderServer { return server }); err != nil {
		log.Fatal(err)
	}
}

type instant struct {
	*provider.Server
}

// ReadResource answers with the state that it was given.
func (instant) ReadResource(_ context.Context, req *tfprotov6.ReadResourceRequest) (*tfprotov6.ReadResourceResponse, error) {
	return &tfprotov6.ReadResourceResponse{NewState: req.CurrentState, NewIdentity: req.CurrentIdentity, Private: req.Private}, nil
}

// PlanResourceChange answers with the state that the CLI proposes.
func (instant) PlanResourceChange(_ context.Context,
	req *tfprotov6.PlanResourceChangeRequest,
) (*tfprotov6.PlanResourceChangeResponse, error) {
	return &tfprotov6.PlanResourceChangeResponse{
		PlannedState: req.ProposedNewState, PlannedIdentity: req.PriorIdentity, PlannedPrivate: req.PriorPrivate,
	}, nil
}
