package readiness

import (
	"context"
	"time"
)

// Once makes one attempt, and returns the error of a check that ends with it.
func (c Check) Once(ctx context.Context) error {
	c.Timeout = time.Hour
	w := wait{Check: c, begun: time.Now(), pause: newPause()}
	if ready, _ := w.try(ctx); ready {
		return nil
	}
	return w.failure()
}
