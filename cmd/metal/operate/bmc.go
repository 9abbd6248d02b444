package operate

import (
	"errors"
	"fmt"
	"regexp"
	"slices"

	"github.com/spf13/cobra"

	"github.com/terraform-provider-metal/terraform-provider-metal/cmd/metal/cli"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/oneview/sharing"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/operator/operate"
)

const aboutNMI = `metal nmi sends machines that are on a non-maskable interrupt, through their BMCs. Most operating systems then crash: they write a crash dump
and restart, as they are configured.`

const aboutMedia = `metal virtual-media inserts an image into a virtual drive of a machine, through its BMC, or empties the drive. It does not
restart the machine, and does not change its boot device.

  metal virtual-media attach rack1-07 --image-url https://images.example.com/rescue.iso
  metal boot-device set cdrom rack1-07 && metal power reboot rack1-07`

// imageURL is what Ironic accepts as the URL of an image.
var imageURL = regexp.MustCompile(`^(https?|nfs|cifs)://.`)

func newMedia(s *cli.Settings) *cobra.Command {
	group := cli.NewGroup("virtual-media", "Change virtual media", aboutMedia)
	device, image := "", ""
	of := func(image string) (operate.Operation, error) {
		if !slices.Contains([]string{string(ironic.DeviceCDROM), string(ironic.DeviceDisk), string(ironic.DeviceFloppy)}, device) {
			return operate.Operation{}, fmt.Errorf("--device is %q; it must be cdrom, disk or floppy", device)
		}
		return operate.Media(ironic.Device(device), image), nil
	}
	attach := newOperation(s, &cobra.Command{Use: "attach [NODE...]", Short: "Insert an image, in place of what is in the drive"},
		operate.BMCTimeout, func(*sharing.Pool) (operate.Operation, error) {
			if !imageURL.MatchString(image) {
				return operate.Operation{}, errors.New("set --image-url to a URL that begins with http://, https://, nfs:// or cifs://")
			}
			return of(image)
		})
	attach.Flags().StringVar(&image, "image-url", "", "`URL` of the image")
	detach := newOperation(s, &cobra.Command{Use: "detach [NODE...]", Short: "Empty a drive"}, operate.BMCTimeout,
		func(*sharing.Pool) (operate.Operation, error) { return of("") })
	for _, cmd := range []*cobra.Command{attach, detach} {
		cmd.Flags().StringVar(&device, "device", string(ironic.DeviceCDROM), "`drive`: cdrom, disk or floppy")
		group.AddCommand(cmd)
	}
	return group
}
