package provider

import (
	"context"
	"sync"

	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/framework"
)

// schemas are the provider's schemas; empty ones if the framework refuses to make them.
type schemas struct {
	*tfprotov6.GetProviderSchemaResponse
	fingerprints map[string]framework.Fingerprints // by resource type
}

// knownSchemas returns the schemas. They are the same for all servers.
var knownSchemas = sync.OnceValue(func() schemas {
	known := schemas{&tfprotov6.GetProviderSchemaResponse{}, map[string]framework.Fingerprints{}}
	ctx := context.Background() //nolint:forbidigo // the framework makes no request for it
	made, err := providerserver.NewProtocol6(&metal{})().GetProviderSchema(ctx, &tfprotov6.GetProviderSchemaRequest{})
	if err == nil && made != nil {
		known.GetProviderSchemaResponse = made
	}
	for name, schema := range known.ResourceSchemas {
		known.fingerprints[name] = framework.NewFingerprints(schema)
	}
	return known
})
