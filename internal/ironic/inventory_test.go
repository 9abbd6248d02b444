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
		"MAC address and name of a port": {`[[1, "04aabbccddeeff"], [2, "0545746831"], [5, "6c6561662d31"]]`, Neighbour{SwitchID: "aa:bb:cc:dd:ee:ff", SwitchName: "leaf-1", PortID: "Eth1", PortIsName: true}},
		"network address":                {`[[1, "0501c0000201"], [2, "03525400aabb01"]]`, Neighbour{SwitchID: "192.0.2.1", PortID: "52:54:00:aa:bb:01"}},
		"other types":                    {`[[3, "0078"], [127, "0080c2010001"]]`, Neighbour{}},
		"nothing":                        {`null`, Neighbour{}},
		"a description":                  {`[[2, "07313700"], [4, "757000"]]`, Neighbour{PortID: "17", PortDescription: "up"}},
		"control characters":             {`[[1, "07"], [2, "070a0d"], [5, "ff"]]`, Neighbour{}},
		"no TLVs":                        {`[[1], ["2", "05"], [2, 5], [5, "zz"], {"a": 1}]`, Neighbour{}},
		"a text":                         {`"lldp"`, Neighbour{}},
	} {
		if got := readLLDP(json.RawMessage(tt.raw)); got != tt.want {
			t.Errorf("%s: %+v, want %+v", name, got, tt.want)
		}
	}
}
