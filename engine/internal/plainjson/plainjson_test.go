package plainjson

import (
	"encoding/json"
	"testing"
)

func TestForms(t *testing.T) {
	v := map[string]any{"a": "<&>\u2028\n", "b": []any{}, "c": []int{1}, "d": json.RawMessage(`{"z": 1.50}`)}
	for form, want := range map[string]string{
		"compact":  `{"a":"<&>\u2028\n","b":[],"c":[1],"d":{"z":1.50}}`,
		"indented": "{\n  \"a\": \"<&>\\u2028\\n\",\n  \"b\": [],\n  \"c\": [\n    1\n  ],\n  \"d\": {\n    \"z\": 1.50\n  }\n}",
	} {
		write := map[string]func(any) ([]byte, error){"compact": Compact, "indented": Indented}[form]
		if got, err := write(v); err != nil || string(got) != want {
			t.Errorf("%s: %s %v, want %s", form, got, err, want)
		}
		if got, err := write(func() {}); err == nil {
			t.Errorf("%s: a function became %s", form, got)
		}
	}
}
