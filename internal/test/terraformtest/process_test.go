package terraformtest

import (
	"context"
	"strings"
	"testing"
)

func TestAwait_aPanicIsAnError(t *testing.T) {
	t.Parallel()
	panics := func(context.Context, int) (int, error) { panic("out of nodes") }
	for name, p := range map[string]*Process{"process of the test": nil, "own process": NewProcess()} {
		if _, err, lives := await(t.Context(), p, panics, 1); !lives || err == nil || !strings.Contains(err.Error(), "out of nodes") {
			t.Errorf("%s: the error is %v, the process lives: %t", name, err, lives)
		}
	}
}
