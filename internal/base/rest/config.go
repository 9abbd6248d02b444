package rest

import (
	"fmt"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/fault"
)

// KindUnknownConfig is the kind of an error which says that the provider's configuration depends on a value that Terraform knows only after
// apply. The attribute is in About.
const KindUnknownConfig fault.Kind = "unknown configuration"

// UnknownConfig returns the error of KindUnknownConfig for an attribute.
func UnknownConfig(attribute string) error {
	return &fault.Error{
		Kind: KindUnknownConfig, About: attribute,
		Fact:   fmt.Sprintf("the provider's configuration is not known yet: %s depends on something that does not exist yet", attribute),
		Advice: "Apply what it depends on first, with -target, or set the value directly.",
	}
}
