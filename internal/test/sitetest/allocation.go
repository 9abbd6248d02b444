package sitetest

import (
	"context"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
)

// Allocate makes an allocation and waits for it.
func Allocate(ctx context.Context, client *Client, spec ironic.AllocationSpec) (*ironic.Allocation, error) {
	if _, err := client.Ironic.CreateAllocation(ctx, spec); err != nil {
		return nil, err
	}
	return client.AwaitAllocation(ctx, spec, time.Hour)
}
