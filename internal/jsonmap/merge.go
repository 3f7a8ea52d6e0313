// Package jsonmap merges JSON objects that are decoded into maps.
package jsonmap

// Merge the fields of from into the other map. Objects are merged field by field. Any other value, a list too, replaces what
// is there. The maps share what is in from afterwards.
func Merge(into, from map[string]any) {
	for name, v := range from {
		there, isObject := into[name].(map[string]any)
		if more, ok := v.(map[string]any); ok && isObject {
			Merge(there, more)
			continue
		}
		into[name] = v
	}
}
