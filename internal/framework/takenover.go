package framework

import (
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/diag"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/marks"
)

// WarnTakenOver tells the user, in the plan or during the apply, that a resource takes over what a killed run has begun to create. more
// are further sentences.
func WarnTakenOver(diags *diag.Diagnostics, what string, by *marks.Creation, more ...string) {
	Show(diags, machine.TakenOver(by, what, more...))
}

// WarnKept tells the user that a deletion leaves what another resource of the same run has taken over.
func WarnKept(diags *diag.Diagnostics, what string) {
	diags.AddWarning("Taken-over object is not deleted", fmt.Sprintf("Another resource of this apply has taken over %s, so it stays.", what))
}
