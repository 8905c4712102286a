//go:build race

package redact

// raced says that the race detector is on, with which everything takes ten times
// as long.
const raced = true
