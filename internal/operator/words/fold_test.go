package words_test

import (
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/operator/words"
)

// Lines that are too long are broken between words, and go on below their last column.
func TestFold(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"short\n\nlines\n": "short\n\nlines\n",
		"a line that is longer than forty columns by far\n":     "a line that is longer than forty columns\nby far\n",
		"  an indented line that is longer than forty columns":  "  an indented line that is longer than\n    forty columns",
		"ok  the text in a column is longer than forty columns": "ok  the text in a column is longer than\n    forty columns",
		"a first column  and a second that is narrow by far":    "a first column  and a second that is\nnarrow by far",
		"  metal power off rack1-07 --soft    asks its operating system to shut down": "  metal power off rack1-07 --soft\n" +
			"    asks its operating system to shut\n      down",
		"  metal qualify rack1-07 --steps deploy.burnin_cpu --yes": "  metal qualify rack1-07 --steps deploy.burnin_cpu --yes",
		"https://ironic.example.com:6385/v1/nodes?fields=uuid":     "https://ironic.example.com:6385/v1/nodes?fields=uuid",
	} {
		if got := words.Fold(text, 40); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
