package main

import (
	"encoding/xml"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
)

func TestDiagrams_areWellFormedAndEveryTextFits(t *testing.T) {
	t.Parallel()
	for name, draw := range diagrams {
		c := draw()
		if err := errors.Join(c.problems...); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if c.title == "" || c.description == "" {
			t.Errorf("%s has no title or no description for screen readers", name)
		}
		for decoder := xml.NewDecoder(strings.NewReader(c.svg())); ; {
			if _, err := decoder.Token(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Errorf("%s: %v", name, err)
				break
			}
		}
	}
}

func TestWrap_keepsCodeInOnePieceAndMarksEachLine(t *testing.T) {
	t.Parallel()
	got := wrap("*two words* and `a = b`; end", size, 60)
	if want := []string{"*two*", "*words*", "and", "`a = b`;", "end"}; !slices.Equal(got, want) {
		t.Errorf("lines are %q, want %q", got, want)
	}
}

func TestCanvas_reportsATextThatDoesNotFit(t *testing.T) {
	t.Parallel()
	c := newCanvas("", "")
	c.label(plain, 0, 0, 20, 20, "much too long")
	c.box(plain, 0, 0, 60, 20, "two lines")
	if len(c.problems) != 2 {
		t.Errorf("problems are %v, want two", c.problems)
	}
}
