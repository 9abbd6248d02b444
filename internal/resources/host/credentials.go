package host

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/framework"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
)

// newSecrets returns the keys of secrets that the configuration which was applied last did not have.
func (m *model) newSecrets(ctx context.Context, before managed) (keys []string) {
	for key := range m.secrets(ctx) {
		if !slices.Contains(before, "/driver_info/"+key) {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

// refuseUnsent refuses new keys of driver_info_wo that an empty plan would never send.
func (m *model) refuseUnsent(ctx context.Context, before managed, diags *diag.Diagnostics) {
	if before == nil || m.DriverInfoWO.IsUnknown() || m.BMC.IsUnknown() {
		return
	}
	if keys := m.newSecrets(ctx, before); len(keys) > 0 {
		diags.AddAttributeError(path.Root("driver_info_wo_version"), "Secrets without a new version", fmt.Sprintf("driver_info_wo has new keys (%s), and driver_info_wo_version has not changed, so the provider would not send them. "+
			"Change driver_info_wo_version.", strings.Join(keys, ", ")))
	}
}

// lostSecret reports whether a node lacks a secret of driver_info_wo that was applied.
func (m *model) lostSecret(node *ironic.Node, before managed) bool {
	if m.DriverInfoWOVersion.IsNull() || ironic.AddressKey(node.DriverInfo) == "" {
		return false
	}
	return slices.ContainsFunc(before.below("/driver_info"), func(key string) bool {
		_, has := node.DriverInfo[key]
		return ironic.IsSecretKey(key) && !has
	})
}

// losePassword removes from the block what shows that Ironic has the password, so that the next plan sends it.
func (b *bmcModel) losePassword(node *ironic.Node, key string) {
	if _, has := node.DriverInfo[key]; has {
		return
	}
	b.PasswordWOVersion = types.Int64Null()
	if framework.IsSet(b.Password) {
		b.Password = types.StringNull()
	}
}
