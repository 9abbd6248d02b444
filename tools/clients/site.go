package main

import (
	"context"
	"errors"
	"net"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakehttp"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakekeystone"
)

// site is a fake Ironic of a version, behind a fake Keystone if it asks for one.
type site struct {
	ironic, keystone string // their addresses
	stop             func() error
}

// secondAdmin is the name of a user like sys-admin.
const secondAdmin = "sys-admin-2"

// startSite starts an Ironic of a version, or takes the real one, behind a Keystone if withKeystone is set.
func startSite(ctx context.Context, v version, ironic *fakeironic.Server, withKeystone bool) (_ *site, err error) {
	ironic.MaxMicroversion = v.api
	serving, cancel := context.WithCancel(ctx)
	var listeners []net.Listener
	for range 2 {
		listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
		if err != nil {
			cancel()
			return nil, err
		}
		listeners = append(listeners, listener)
	}
	s := &site{ironic: "http://" + listeners[0].Addr().String(), keystone: "http://" + listeners[1].Addr().String()}
	if v.real != "" {
		s.ironic = v.real // which asks no Keystone
	}
	keystone := fakekeystone.NewSite(s.ironic)
	for _, user := range keystone.Users {
		if user.Name == "sys-admin" {
			user.ID, user.Name = secondAdmin+"-id", secondAdmin
			keystone.Users = append(keystone.Users, user)
		}
	}
	if withKeystone {
		ironic.Identify = func(token string) (fakeironic.Caller, bool) {
			who, known := keystone.Identify(token)
			return fakeironic.Caller{Project: who.ProjectID, System: who.System, Roles: who.Roles}, known
		}
	}
	ended := make(chan error, 2)
	go func() { ended <- fakehttp.Serve(serving, ironic, listeners[0]) }()
	go func() { ended <- fakehttp.Serve(serving, keystone, listeners[1]) }()
	s.stop = func() error {
		cancel()
		return errors.Join(<-ended, <-ended)
	}
	return s, nil
}
