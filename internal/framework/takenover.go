package framework

import (
	"fmt"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/provision"
)

// WarnTakenOver tells the user, in the plan or during the apply, that a resource takes over what a killed run has begun to create. more
// are further sentences.
func WarnTakenOver(diags *diag.Diagnostics, what string, by *provision.Creation, more ...string) {
	begun := "has begun to create"
	if !by.Done.IsZero() {
		begun = "has just created"
	}
	diags.AddWarning("Interrupted creation is continued", fmt.Sprintf("Another run %s %s, and this state does not have it: %s. "+
		"The apply takes it over and finishes it; it repeats nothing. If that run was not yours, or its state has the resource, remove it from one of the two configurations.", begun, what, by)+joined(more))
}

// joined returns further sentences of a message.
func joined(sentences []string) string {
	if len(sentences) == 0 {
		return ""
	}
	return " " + strings.Join(sentences, " ")
}

// WarnKept tells the user that a deletion leaves what another resource of the same run has taken over.
func WarnKept(diags *diag.Diagnostics, what string) {
	diags.AddWarning("Taken-over object is not deleted", fmt.Sprintf("Another resource of this apply has taken over %s, so it stays.", what))
}
