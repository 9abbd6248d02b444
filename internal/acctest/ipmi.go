package acctest

import (
	"context"
	"net"
	"sync"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fakebmc/ipmi"
)

// StartIPMI lets a BMC of StartBMC speak IPMI too, at a UDP address such as 127.0.0.1:0, until the test ends. Ironic waits between
// two commands to the same IP address, so BMCs are faster at addresses of their own.
func (b *Controller) StartIPMI(address string) *ipmi.Server {
	b.t.Helper()
	conn, err := (&net.ListenConfig{}).ListenPacket(b.t.Context(), "udp", address)
	if err != nil {
		b.t.Skip(err)
	}
	face := &ipmi.Server{Fake: b.Server, BMC: b.BMC}
	b.IPMI = conn.LocalAddr().String()
	var serving sync.WaitGroup
	ctx := context.WithoutCancel(b.t.Context()) // clean-ups need the BMC
	serving.Go(func() {
		if err := face.Serve(ctx, conn); err != nil {
			b.t.Error(err)
		}
	})
	b.t.Cleanup(func() {
		_ = conn.Close()
		serving.Wait()
	})
	return face
}

// IPMIBlock is Block for IPMI.
func (b *Controller) IPMIBlock(settings ...string) string {
	username, password := b.Credentials()
	return BMC("ipmi://"+b.IPMI, append([]string{"username = " + Quoted(username), "password = " + Quoted(password)}, settings...)...)
}
