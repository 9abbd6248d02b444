package ironic

import (
	"context"
	"net/http"
	"net/url"
)

// Device is a device of virtual media, or a boot device.
type Device string

// The devices of virtual media. Machines also boot from the CD drive.
const (
	DeviceCDROM  Device = "cdrom"
	DeviceDisk   Device = "disk"
	DeviceFloppy Device = "floppy"
)

// AttachMedia inserts an image into a virtual device of a machine (API 1.89). Ironic answers before the operation has ended; a failure
// shows in the node's last_error only.
func (c *Client) AttachMedia(ctx context.Context, id string, device Device, image string) error {
	defer c.nodes.invalidate(id)
	return c.Request(ctx, http.MethodPost, "nodes/"+id+"/vmedia", map[string]any{"device_type": device, "image_url": image}, nil)
}

// DetachMedia empties a virtual device of a machine; see AttachMedia.
func (c *Client) DetachMedia(ctx context.Context, id string, device Device) error {
	defer c.nodes.invalidate(id)
	return c.Request(ctx, http.MethodDelete, "nodes/"+id+"/vmedia?device_types="+url.QueryEscape(string(device)), nil, nil)
}

// SetBootDevice makes a machine boot from a device from now on.
func (c *Client) SetBootDevice(ctx context.Context, id string, device Device) error {
	return c.Request(ctx, http.MethodPut, "nodes/"+id+"/management/boot_device", map[string]any{"boot_device": device, "persistent": true}, nil)
}

// InjectNMI interrupts a machine with a non-maskable interrupt (API 1.29).
func (c *Client) InjectNMI(ctx context.Context, id string) error {
	return c.Request(ctx, http.MethodPut, "nodes/"+id+"/management/inject_nmi", map[string]any{}, nil)
}
