package ironic

import (
	"encoding/json"
	"testing"
)

func TestLLDP_readsWhatSwitchesAnnounce(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		raw  string
		want Neighbour
	}{
		"MAC address and name of a port": {`[[1, "04aabbccddeeff"], [2, "0545746831"], [5, "6c6561662d31"]]`, Neighbour{"aa:bb:cc:dd:ee:ff", "leaf-1", "Eth1"}},
		"network address":                {`[[1, "0501c0000201"], [2, "03525400aabb01"]]`, Neighbour{SwitchID: "192.0.2.1", PortID: "52:54:00:aa:bb:01"}},
		"other types":                    {`[[3, "0078"], [127, "0080c2010001"]]`, Neighbour{}},
		"nothing":                        {`null`, Neighbour{}},
		"control characters":             {`[[1, "07"], [2, "050a0d"], [5, "ff"]]`, Neighbour{}},
		"no TLVs":                        {`[[1], ["2", "05"], [2, 5], [5, "zz"], {"a": 1}]`, Neighbour{}},
		"a text":                         {`"lldp"`, Neighbour{}},
	} {
		if got := readLLDP(json.RawMessage(tt.raw)); got != tt.want {
			t.Errorf("%s: %+v, want %+v", name, got, tt.want)
		}
	}
}
