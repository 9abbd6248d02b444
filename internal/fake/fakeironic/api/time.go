package api

import (
	"time"
)

// Timestamp formats a time as Ironic does.
func Timestamp(t time.Time) string {
	return t.UTC().Format("2006-01-02T15:04:05.000000-07:00")
}

// Coarse cuts a timestamp to whole seconds, as Ironic does in the answer to a POST.
func Coarse(stamp any) any {
	text, ok := stamp.(string)
	if !ok {
		return stamp
	}
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return stamp
	}
	return t.UTC().Format("2006-01-02T15:04:05-07:00")
}

// CoarseTimes cuts created_at and updated_at to whole seconds, as Ironic does in answers to POST and PATCH.
func CoarseTimes(shown Ordered) Ordered {
	for i := range shown {
		if shown[i].Key == "created_at" || shown[i].Key == "updated_at" {
			shown[i].Value = Coarse(shown[i].Value)
		}
	}
	return shown
}
