package sitetest

import (
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/allocate"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
)

// GroupOf returns a group of new members of the fleet's class.
func GroupOf(size int) *allocate.Group {
	g := &allocate.Group{
		Request: allocate.Request{AllocationSpec: ironic.AllocationSpec{ResourceClass: "baremetal"}},
		Name:    "g", Size: size,
	}
	for i := range size {
		g.Members = append(g.Members, &allocate.GroupMember{Name: allocate.MemberName("g", i)})
	}
	return g
}
