package image

import (
	"bytes"
	"fmt"
	"path"
	"slices"
	"strings"
)

// initrd makes the initial RAM disk: busybox, /init, the agent's sums, and the
// named modules with what they depend on. It is not compressed: reading it costs less than
// unpacking would on an emulated processor.
func (b *bootFiles) initrd(modules []string, init []byte) ([]byte, error) {
	depends, err := moduleClosure(b.depends, modules)
	if err != nil {
		return nil, err
	}
	var a cpio
	for _, dir := range []string{"bin", "dev", "lib", "lib/modules", "proc", "root", "sys"} {
		a.dir(dir)
	}
	base := path.Join("lib/modules", b.version)
	a.dir(base)
	made := map[string]bool{}
	var index strings.Builder
	for _, line := range depends {
		file, _, _ := strings.Cut(line, ":")
		data, ok := b.modules[file]
		if !ok {
			return nil, fmt.Errorf("the kernel's modules.dep names %s, which is not there", file)
		}
		parts := strings.Split(path.Dir(file), "/")
		for i := range parts {
			dir := path.Join(base, path.Join(parts[:i+1]...))
			if !made[dir] {
				made[dir] = true
				a.dir(dir)
			}
		}
		a.file(path.Join(base, file), 0o644, data)
		index.WriteString(line + "\n")
	}
	a.file(path.Join(base, "modules.dep"), 0o644, []byte(index.String()))
	a.file("bin/busybox", 0o755, b.busybox)
	a.file("init", 0o755, init)
	a.file("sums", 0o644, b.sums)
	a.file("modules", 0o644, []byte(strings.Join(modules, " ")+"\n"))
	// The kernel opens it for /init's first words.
	a.node("dev/console", 0o020600, 5, 1)
	return a.end(), nil
}

// moduleClosure picks from a modules.dep the lines of the named modules and of
// all that they depend on. A module that is built in has no line; it is left
// out.
func moduleClosure(depends string, modules []string) ([]string, error) {
	lines, byName := map[string]string{}, map[string]string{}
	for line := range strings.Lines(depends) {
		line = strings.TrimRight(line, "\n")
		file, _, ok := strings.Cut(line, ":")
		if !ok {
			return nil, fmt.Errorf("modules.dep has the line %q", line)
		}
		lines[file] = line
		byName[strings.ReplaceAll(strings.TrimSuffix(path.Base(file), ".ko"), "-", "_")] = file
	}
	var picked []string
	for _, m := range modules {
		file, ok := byName[strings.ReplaceAll(m, "-", "_")]
		if !ok {
			continue
		}
		_, needs, _ := strings.Cut(lines[file], ":")
		for _, f := range append(strings.Fields(needs), file) {
			if lines[f] == "" {
				return nil, fmt.Errorf("modules.dep: %s needs %s, which has no line", m, f)
			}
			if !slices.Contains(picked, lines[f]) {
				picked = append(picked, lines[f])
			}
		}
	}
	return picked, nil
}

// cpio writes the archive format that the kernel unpacks ("newc", the kernel's
// Documentation/driver-api/early-userspace/buffer-format).
type cpio struct {
	buf bytes.Buffer
	ino int
}

func (c *cpio) entry(name string, mode, major, minor int, data []byte) {
	c.ino++
	links := 1
	fmt.Fprintf(&c.buf, "070701%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X",
		c.ino, mode, 0, 0, links, 0, len(data), 0, 0, major, minor, len(name)+1, 0)
	c.buf.WriteString(name)
	c.buf.WriteByte(0)
	c.pad()
	c.buf.Write(data)
	c.pad()
}

func (c *cpio) pad() {
	for c.buf.Len()%4 != 0 {
		c.buf.WriteByte(0)
	}
}

func (c *cpio) dir(name string)                          { c.entry(name, 0o040755, 0, 0, nil) }
func (c *cpio) file(name string, perm int, data []byte)  { c.entry(name, 0o100000|perm, 0, 0, data) }
func (c *cpio) node(name string, mode, major, minor int) { c.entry(name, mode, major, minor, nil) }

func (c *cpio) end() []byte {
	c.entry("TRAILER!!!", 0, 0, 0, nil)
	return c.buf.Bytes()
}
