package event

import (
	"encoding/json"

	"refbox/engine/text"
)

// Saw is what the witness of a fault's receipt saw last, on one line; "" where it says
// nothing.
func Saw(receipt json.RawMessage) string {
	var r struct {
		Saw string `json:"saw"`
	}
	if json.Unmarshal(receipt, &r) != nil {
		return ""
	}
	return text.Line(r.Saw)
}
