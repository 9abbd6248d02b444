package manual

import (
	"reflect"
	"strings"
	"testing"
)

func TestBlocksOf(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		description string
		want        []block
	}{
		"paragraphs": {
			"The first\nparagraph.\n\nThe second.",
			[]block{{text: "The first paragraph."}, {text: "The second."}},
		},
		"terms with texts, below a paragraph": {
			"Who uses it:\n  free    the hardware\n          has none\n  ironic  its own",
			[]block{{text: "Who uses it:"}, {items: []item{{"free", "the hardware has none"}, {"ironic", "its own"}}}},
		},
		"a term as long as the column": {
			"  taken     it is taken\n  left over it is left\n            over",
			[]block{{items: []item{{"taken", "it is taken"}, {"left over", "it is left over"}}}},
		},
		"lines without texts": {
			"  metal watch\n  metal man DIR",
			[]block{{items: []item{{"metal watch", ""}, {"metal man DIR", ""}}}},
		},
		"tabs": {
			"Run:\n\n\tsource <(metal completion bash)\n",
			[]block{{text: "Run:"}, {items: []item{{"source <(metal completion bash)", ""}}}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := blocksOf(tt.description); !reflect.DeepEqual(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestFill_isPlainForRoff(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"It ends. Then it begins.": "It ends.\nThen it begins.\n",
		"It is --dry-run (--all).": `It is \fB\-\-dry\-run\fP (\fB\-\-all\fP).` + "\n",
		`a \ and 'b' of ^c~d`:      `a \e and \(aqb\(aq of \(hac\(tid` + "\n",
		"ends.\n.profile is a":     "ends.\n\\&.profile is a\n",
		"'quoted' at the begin":    `\(aqquoted\(aq at the begin` + "\n",
		"a -- b, a-b":              `a \-\- b, a\-b` + "\n",
	} {
		var got strings.Builder
		if fill(&got, text); got.String() != want {
			t.Errorf("%q: got %q, want %q", text, got.String(), want)
		}
	}
	var long strings.Builder
	fill(&long, strings.Repeat("word ", 100))
	for line := range strings.SplitSeq(long.String(), "\n") {
		if len(line) > width {
			t.Errorf("a line of %d characters: %q", len(line), line)
		}
	}
}
