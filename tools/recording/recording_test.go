package main

import (
	"encoding/xml"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestSpans_keepsColoursAndCutsLongLines(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"a <b>":                      "a &lt;b&gt;",
		"\x1b[32mok\x1b[0m done":     `<tspan class="green">ok</tspan> done`,
		strings.Repeat("ä", 120):     strings.Repeat("ä", columns),
		"\x1b[2m\x1b[0m" + "nothing": "nothing",
	} {
		if got := spans(text); got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	}
}

func TestSchedule_shortensPausesKeepsLinesTogetherAndLeavesTimeToRead(t *testing.T) {
	t.Parallel()
	times, total := schedule([]line{
		{0, "a"},
		{5 * time.Second, "b"},
		{5*time.Second + time.Millisecond, "c"},
		{6 * time.Second, "d"},
		{6 * time.Second, ""},
	})
	d := longestPause + 999*time.Millisecond
	if want := []time.Duration{0, longestPause, longestPause, d, d + readingPause}; !slices.Equal(times, want) || total != d+
		readingPause+lastPause {
		t.Errorf("times are %v of %v, want %v of %v", times, total, want, d+readingPause+lastPause)
	}
}

func TestAnimate_isWellFormed(t *testing.T) {
	t.Parallel()
	text := animate("make <demo>", []line{{0, "\x1b[1m1. Plan\x1b[0m"}, {time.Second, "a & b"}})
	for decoder := xml.NewDecoder(strings.NewReader(text)); ; {
		if _, err := decoder.Token(); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatal(err)
		}
	}
}
