// Package recording is a heat's folder (design: section 3). A Writer makes one,
// and is its only writer; a Recording reads one: ours, while it is being written
// or later, or the reference's, of any era. It hides where things lie, what is
// missing, and what is broken.
//
// Guarantees of reading: nothing is written; whatever can be shown is shown, and
// what cannot is in Integrity; only whole lines count; files outside the folder
// are never followed; strings come sanitised, console bytes do not (they go
// through a terminal emulator); memory is bounded whatever the files hold.
//
// Guarantees of writing: lines are whole, JSON files appear whole or not at all,
// and a kill at any instant leaves a folder that opens, verifies, and says where
// it stopped.
package recording
