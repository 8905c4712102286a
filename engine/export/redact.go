package export

import (
	"reflect"
	"regexp"

	"refbox/engine/redact"
	"refbox/engine/text"
)

// halves are long words that were cut: half a key has no form to be known by.
var halves = regexp.MustCompile(`[^\s…]{10,}…`)

// redactAll takes secrets out of every text below v, which is a pointer.
func redactAll(r *redact.Redactor, v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			redactAll(r, v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Field(i); f.CanSet() {
				redactAll(r, f)
			}
		}
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			redactAll(r, v.Index(i))
		}
	case reflect.String:
		if !v.CanSet() {
			return
		}
		s := r.Text(v.String())
		if len(s) > maxCell/2 {
			s = halves.ReplaceAllString(s, text.Ellipsis)
		}
		v.SetString(s)
	}
}
