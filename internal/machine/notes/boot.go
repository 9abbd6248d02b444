package notes

import (
	"fmt"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
)

// KeyBoot is the key of the note of the live ISO that the node was booted with, and of what deploying it again must restore.
// internal/deploy has the type of the note.
const KeyBoot = "terraform_metal_boot"

type boot struct {
	Image string    `json:"image"`
	At    time.Time `json:"at"`
	Boots int       `json:"boots"`
	Again *struct{} `json:"again"`
}

func sayBoot(n *ironic.Node, _ time.Time) (w Words) {
	b := Read[boot](n.Extra, KeyBoot)
	if b == nil || b.Image == "" {
		return w
	}
	if !b.At.IsZero() {
		w.Told = append(w.Told, Note{At: b.At, Text: fmt.Sprintf("boot of a live ISO (boot %d of this image)", max(1, b.Boots))})
	}
	if b.Again != nil {
		w.Told = append(w.Told, Note{Text: "the machine is undeployed, to be deployed again with a live ISO"})
	}
	return w
}
