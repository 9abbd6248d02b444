package provider

import (
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

func TestLocate_namesAttribute(t *testing.T) {
	t.Parallel()
	at := tftypes.NewAttributePath
	for _, c := range []struct {
		at           *tftypes.AttributePath
		detail, want string
	}{
		{nil, "It is wrong.", "It is wrong."},
		{at().WithAttributeName("name"), "It is wrong.", "It is wrong."}, // Terraform shows the line
		{at().WithAttributeName("image").WithAttributeName("url"), "It is wrong.", "image.url: It is wrong."},
		{at().WithAttributeName("image").WithAttributeName("url"), "Attribute image.url is wrong.", "Attribute image.url is wrong."},
		{
			at().WithAttributeName("deploy_steps").WithElementKeyInt(1).WithAttributeName("args"), "It is wrong.",
			"deploy_steps[1].args: It is wrong.",
		},
		{at().WithAttributeName("ports").WithElementKeyString("x"), "It is wrong.", `ports["x"]: It is wrong.`},
		{
			at().WithAttributeName("traits").WithElementKeyValue(tftypes.NewValue(tftypes.String, "x")), "It is wrong.",
			"traits: It is wrong.",
		},
	} {
		d := &tfprotov6.Diagnostic{Attribute: c.at, Detail: c.detail}
		locate([]*tfprotov6.Diagnostic{d})
		if d.Detail != c.want {
			t.Errorf("at %v: %q, want %q", c.at, d.Detail, c.want)
		}
	}
}
