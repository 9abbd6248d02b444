package acctest

import "testing"

// A step that expects an error must not pass because a warning says the expected text.
func TestErrorsIn_leavesOutWarnings(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ output, want string }{
		"in frames": {
			"The plan.\n╷\n│ Warning: Disk is erased\n│ \n│ One.\n╵\n╷\n│ Error: No node\n│ \n│   with metal_host.h,\n│ \n│ " +
				"Two.\n╵\nThe end.\n",
			"│ Error: No node\n│ \n│   with metal_host.h,\n│ \n│ Two.\n",
		},
		"without frames": {
			"\nWarning: Disk is erased\n\nOne.\n\nError: No node\n\nTwo.\n\nError: No image\n\nWarning: Late\n",
			"Error: No node\n\nTwo.\n\nError: No image\n\n",
		},
		"a warning only": {"╷\n│ Warning: Disk is erased\n│ \n│ One.\n╵\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := errorsIn(tt.output); got != tt.want {
				t.Errorf("errors are %q, want %q", got, tt.want)
			}
		})
	}
}
