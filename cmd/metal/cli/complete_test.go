package cli_test

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spf13/cobra"

	"github.com/terraform-provider-metal/terraform-provider-metal/cmd/metal/cli"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/ironictest"
)

func TestCompletionWaitsThreeSecondsForIronic(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &cli.Settings{Getenv: func(name string) string { return map[string]string{"METAL_ENDPOINT": "http://ironic.test"}[name] }}
		s.Ironic.Transport = ironictest.Transport(func(r *http.Request) (*http.Response, error) {
			<-r.Context().Done()
			return nil, r.Context().Err()
		})
		root := cli.NewRoot(s, "")
		cmd := &cobra.Command{Use: "show NODE", Run: func(*cobra.Command, []string) {}}
		root.AddCommand(cmd)
		root.SetContext(t.Context())
		cmd.SetContext(t.Context())
		began := time.Now()
		if err := cmd.ParseFlags(nil); err != nil {
			t.Fatal(err)
		}
		words, directive := s.CompleteNodes()(cmd, nil, "")
		if len(words) > 0 || directive != cobra.ShellCompDirectiveNoFileComp || time.Since(began) != 3*time.Second {
			t.Errorf("%q, %d after %s", words, directive, time.Since(began))
		}
	})
}
