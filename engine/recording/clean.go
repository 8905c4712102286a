package recording

import (
	"reflect"

	"refbox/engine/text"
)

// clean sanitises every string that v, a pointer, leads to: what a JSON file of a
// foreign folder says may be shown afterwards. Keys of maps too.
func clean(v any) { cleanValue(reflect.ValueOf(v)) }

func cleanValue(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			cleanValue(v.Elem())
		}
	case reflect.String:
		if v.CanSet() {
			v.SetString(text.Block(v.String()))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				cleanValue(v.Field(i))
			}
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return
		}
		for i := range v.Len() {
			cleanValue(v.Index(i))
		}
	case reflect.Map:
		if v.IsNil() || v.Type().Key().Kind() != reflect.String {
			return
		}
		out := reflect.MakeMap(v.Type())
		for _, k := range v.MapKeys() {
			value := reflect.New(v.Type().Elem()).Elem()
			value.Set(v.MapIndex(k))
			cleanValue(value)
			key := reflect.New(v.Type().Key()).Elem()
			key.SetString(text.Line(k.String()))
			out.SetMapIndex(key, value)
		}
		v.Set(out)
	}
}
