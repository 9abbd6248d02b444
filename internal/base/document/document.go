// Package document reads JSON whose numbers keep their digits: Python, and so Ironic, has integers of any size, which float64 rounds above
// 2^53.
package document

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"strings"
)

// Decode reads one JSON value. Numbers in maps and lists become json.Number.
func Decode(text []byte, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	if err := decoder.Decode(into); err != nil {
		return err
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return errors.New("more text after the JSON value")
	}
	return nil
}

// Number returns a number of a decoded document.
func Number(value any) (number float64, is bool) {
	switch value := value.(type) {
	case float64:
		return value, true
	case json.Number:
		number, err := value.Float64()
		return number, err == nil
	}
	return 0, false
}

// Digits returns a number in the one form for its value, without an exponent. Python reads a number with a point or an exponent as float64.
func Digits(n json.Number) string {
	number, err := n.Float64()
	if err != nil || !strings.ContainsAny(n.String(), ".eE") {
		return n.String()
	}
	return strconv.FormatFloat(number, 'f', -1, 64)
}
