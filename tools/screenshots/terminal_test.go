package main

import "testing"

func TestPaintKeepsColoursOnly(t *testing.T) {
	t.Parallel()
	output := "\x1b[?1049h\x1b[Hold\x1b[J\x1b[H\x1b[32m#<\x1b[0m>\x1b[K\r\nb\x1b[K\x1b[J\x1b[Hhalf"
	if got, want := paint(lastFrame(output)), "<span class=\"s32\">#&lt;</span>&gt;\nb"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := lastFrame("\x1b[Hhalf"); got != "" {
		t.Errorf("a frame that is not complete: %q", got)
	}
}
