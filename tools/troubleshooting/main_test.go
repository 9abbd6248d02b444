package main

import (
	"strings"
	"testing"
)

const host = `# Hosts

Text.

## Ports and cables, too

Could not set the ports of node …
Port has a VIF
cause: A cause.
next: A step.

Unknown port group
cause: Another.
next: Add it.

The end.
`

func TestPage_joinsTitlesWithTheirKinds(t *testing.T) {
	t.Parallel()
	known := map[string][]string{
		"Could not set the ports of node …": {"Error"}, "Port has a VIF": {"Error", "Warning"},
		"Unknown port group": {"Error"},
	}
	list := map[string][]string{"Port has a VIF": {"other.md#x"}}
	got, err := page("host.md", host, known, list)
	want := "# Hosts\n\nText.\n\n## Ports and cables, too\n\n" + tableHead +
		"| `Error: Could not set the ports of node …`<br>`Error: Port has a VIF`<br>`Warning: Port has a VIF` | A cause. | A step. |\n" +
		"| `Error: Unknown port group` | Another. | Add it. |\n\nThe end.\n"
	if err != nil || got != want {
		t.Errorf("got %v\n%s\nwant\n%s", err, got, want)
	}
	if got, want := listed(list), "* [`Could not set the ports of node …`](host.md#ports-and-cables-too)\n"+
		"* [`Port has a VIF`](other.md#x), [also here](host.md#ports-and-cables-too)\n* [`Unknown port "+
		"group`](host.md#ports-and-cables-too)\n"; got != want {
		t.Errorf("the list is\n%s\nwant\n%s", got, want)
	}
}

func TestPage_refusesATitleThatTheProviderDoesNotHave(t *testing.T) {
	t.Parallel()
	_, err := page("host.md", host, map[string][]string{"Port has a VIF": {"Error"}}, map[string][]string{})
	if err == nil || !strings.Contains(err.Error(), "Could not set the ports") {
		t.Errorf("got %v", err)
	}
}
