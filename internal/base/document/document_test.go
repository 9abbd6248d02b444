package document_test

import (
	"encoding/json"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/document"
)

func TestDecode_keepsNumbersAsWritten(t *testing.T) {
	t.Parallel()
	const text = `{"a":[9007199254740993,1.0,12345678901234567890,1e3],"b":1048576}`
	var value any
	if err := document.Decode([]byte(text+"\n"), &value); err != nil {
		t.Fatal(err)
	}
	if again, err := json.Marshal(value); string(again) != text {
		t.Errorf("%s, %v", again, err)
	}
	for _, wrong := range []string{"", "{", `{} {}`, `{}}`} {
		if document.Decode([]byte(wrong), &value) == nil {
			t.Errorf("%q is no JSON value", wrong)
		}
	}
}

func TestDigits_haveOneFormForEachValue(t *testing.T) {
	t.Parallel()
	for number, want := range map[json.Number]string{
		"1": "1", "1.0": "1", "1e3": "1000", "0.50": "0.5", "20261127.0": "20261127", "1.048576e+06": "1048576", "-1.0": "-1",
		"9007199254740993": "9007199254740993", "12345678901234567890": "12345678901234567890", "1e999": "1e999",
	} {
		if got := document.Digits(number); got != want {
			t.Errorf("%s: %s, want %s", number, got, want)
		}
	}
}
