package expect

import "testing"

func TestEdits(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		from, to string
		want     int
	}{
		{"", "", 0},
		{"rack1-07", "rack1-07", 0},
		{"", "abc", 3},
		{"rack1-7", "rack1-07", 1},
		{"rack1-07", "rack2-07", 1},
		{"baremetal", "bare-metal", 1},
		{"CUSTOM_NVME", "CUSTOM_NMVE", 2}, // two letters that changed places
		{"kitten", "sitting", 3},
		{"sunday", "saturday", 3},
		{"abcdef", "fedcba", 6},
		{"Größe", "Grösse", 2}, // characters, not bytes
		{"é", "e", 1},
	} {
		if got := edits(tt.from, tt.to); got != tt.want {
			t.Errorf("edits(%q, %q) = %d, want %d", tt.from, tt.to, got, tt.want)
		}
		if got := edits(tt.to, tt.from); got != tt.want {
			t.Errorf("edits(%q, %q) = %d, want %d", tt.to, tt.from, got, tt.want)
		}
	}
}
