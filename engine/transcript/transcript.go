// Package transcript opens what an agent's harness recorded, whatever harness
// it was, and gives it as one list of steps.
//
// It hides the formats (each found by what is in the file, never by its name),
// where records lie, how calls find their results, which of several usage
// figures count, and what is damaged.
//
// Guarantees: nothing is written into what is opened. Reading is lazy: a step
// is a few dozen bytes in memory, its record stays on disk and is found again
// by its offset. What has been read can be stepped while the rest is read. Bad
// input never fails a transcript of which something could be read: what is
// wrong is in Integrity, with its place. Strings come sanitised (engine/text),
// raw bytes on request; encrypted content is named and measured, never handed
// out; private reasoning is marked. Unknown is nil or negative, never zero.
// Methods may be called from any goroutine.
package transcript
