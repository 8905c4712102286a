package recording

import (
	"fmt"
	"io"
	"io/fs"
)

// OpenTree opens a heat's folder that is the root of a tree, such as an archive's,
// and calls it by path. What was found when the tree was made counts in its
// integrity. A tree that is an io.Closer is closed with the recording, or when this
// fails.
func OpenTree(tree fs.FS, path string, found ...Finding) (*Recording, error) {
	r := &Recording{path: path, log: eventsFile, src: &source{fsys: tree}, found: found}
	if err := r.begin(); err != nil {
		return nil, fmt.Errorf("open the recording: %w", err)
	}
	return r, nil
}

// closeTree closes a tree that is closed with its recording.
func closeTree(tree fs.FS) error {
	if c, ok := tree.(io.Closer); ok {
		return c.Close()
	}
	return nil
}

// Tree is the recording's folder as a tree of files, raw; nil for a log without a
// folder. A name in it may be a link: open only what a walk gives as a plain file.
func (r *Recording) Tree() fs.FS {
	if r.single {
		return nil
	}
	return r.source().fsys
}
