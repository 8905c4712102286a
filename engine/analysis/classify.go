package analysis

import (
	"path"
	"regexp"
	"strings"

	"refbox/engine/transcript"
)

// planning tools keep the agent's own notes.
func planning(tool string) bool {
	switch strings.ToLower(tool) {
	case "todowrite", "todoread", "todo", "plan", "update_plan", "exitplanmode", "enterplanmode", "think":
		return true
	}
	return false
}

// fileTools are tools that write or show one file, by their names in lower case
// without underscores; false only looks.
var fileTools = map[string]bool{
	"write": true, "edit": true, "multiedit": true, "notebookedit": true, "applypatch": true, "writefile": true, "editfile": true,
	"createfile": true, "strreplace": true, "strreplaceeditor": true, "strreplacebasededittool": true, "insert": true, "patch": true, "undoedit": true,
	"read": false, "readfile": false, "glob": false, "grep": false, "ls": false, "list": false, "view": false, "notebookread": false,
	"search": false, "find": false, "webfetch": false, "websearch": false, "fetch": false, "listdir": false, "lsp": false, "forward": false,
}

var editorCommand = regexp.MustCompile(`^edit \d+:\d+[ \t]*\n`)

// toolName is a tool's name for the tables.
func toolName(name string) string {
	return strings.ReplaceAll(strings.ReplaceAll(strings.ToLower(name), "_", ""), "-", "")
}

// tool tells an action's tool; where the record has none, from a command in the
// reference's form: "Write /path", "Grep {…}".
func (a Action) tool() string {
	if a.Tool != "" {
		return toolName(a.Tool)
	}
	word, rest, ok := strings.Cut(a.Command, " ")
	if ok && word != "" && word[0] >= 'A' && word[0] <= 'Z' && (strings.HasPrefix(rest, "/") || strings.HasPrefix(rest, "{")) {
		if _, known := fileTools[toolName(word)]; known {
			return toolName(word)
		}
	}
	return ""
}

// classify judges one action with what the agent wrote before.
func (m *memory) classify(a Action, changedBefore bool) Judgement {
	text := a.Text()
	r := &reading{mem: m, limit: len(text), seen: map[effectKey]bool{}}
	tool := a.tool()
	writes, isFile := a.fileTool()
	switch {
	case tool == "sftp":
		r.sftp(text)
	case a.idle():
	case isFile:
		r.fileTool(a, tool, text, writes)
	case a.Class == transcript.Code, strings.HasPrefix(tool, "python") || tool == "ipython" || tool == "executepython" || tool == "jupyter":
		env := newScope()
		(&shell{reading: r, env: env}).python(code{text: strings.ReplaceAll(text, unknown, " ")}, nil)
	case editorCommand.MatchString(text):
		// SWE-agent's own editor: what follows the first line is the new text.
		r.note(FileWritten, unknown, "edit", Span{0, len(text)}, "")
	default:
		body := text
		if cut := strings.TrimSuffix(body, "…"); cut != body {
			body = cut
			r.degraded = true
		}
		// A NUL means "unknown" inside; in the text of a command it is noise.
		env := newScope()
		r.run(code{text: strings.ReplaceAll(body, unknown, " ")}, env, nil)
	}
	return r.judge(a, text, changedBefore)
}

// fileTool tells whether the call's tool works on one file, and whether it writes.
func (a Action) fileTool() (writes, ok bool) {
	switch a.Class {
	case transcript.Write, transcript.Edit:
		return true, true
	case transcript.Shell, transcript.Code:
		return false, false
	}
	writes, ok = fileTools[a.tool()]
	return writes, ok
}

// idle tells a call that does nothing to a machine: its arguments are no commands.
func (a Action) idle() bool {
	switch a.Class {
	case transcript.Read, transcript.Search, transcript.Browse, transcript.Delegate, transcript.Plan, transcript.Finish:
		return true
	case transcript.Other: // unknown; a command among its arguments tells
		return a.Command == ""
	}
	return false
}

// fileTool notes what a tool does that writes or shows one file.
func (r *reading) fileTool(a Action, tool, text string, writes bool) {
	in := a.fields()
	if command, ok := in["command"].(string); ok && strings.HasPrefix(tool, "strreplace") {
		writes = command != "view" // one tool of several verbs
	}
	if tool == "fetch" || tool == "webfetch" || !writes {
		return
	}
	all := Span{0, len(text)}
	p := a.path()
	if p == "" {
		if _, rest, ok := strings.Cut(text, " "); ok && strings.HasPrefix(rest, "/") && !strings.ContainsAny(rest, "\n") {
			p = rest
		}
	}
	if p == "" { // a patch names its files itself
		patched(text, func(sort Sort, name string, start, end int) {
			r.note(sort, join(unknown, name), a.Tool, Span{start, end}, "")
		})
		if len(r.effects) == 0 {
			r.note(FileWritten, unknown, a.Tool, all, "")
		}
		return
	}
	p = join(unknown, p)
	by := a.Tool
	if by == "" {
		by = tool
	}
	r.note(FileWritten, p, by, all, "")
	if !a.Success {
		return
	}
	get := func(keys ...string) string {
		for _, k := range keys {
			if s, ok := in[k].(string); ok {
				return s
			}
		}
		return ""
	}
	if content := get("content", "contents", "file_text", "text"); content != "" {
		r.mem.put(p, content)
	} else if old, ok := r.script(p); ok {
		n := 1
		if in["replace_all"] == true {
			n = -1
		}
		if from := get("old_string", "oldString", "old_str"); from != "" {
			old = strings.Replace(old, from, get("new_string", "newString", "new_str"), n)
		}
		edits, _ := in["edits"].([]any)
		for _, e := range edits {
			if e, ok := e.(map[string]any); ok {
				from, _ := e["old_string"].(string)
				to, _ := e["new_string"].(string)
				if from != "" {
					old = strings.Replace(old, from, to, 1)
				}
			}
		}
		r.mem.put(p, old)
	}
}

// sftp reads what the gateway saw of a file transfer, one request a line.
func (r *reading) sftp(text string) {
	at := 0
	for _, line := range strings.SplitAfter(text, "\n") {
		verb, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		span := Span{at, at + len(strings.TrimRight(line, "\n"))}
		at += len(line)
		sort, ok := map[string]Sort{"write": FileWritten, "remove": FileRemoved, "rmdir": FileRemoved, "mkdir": DirectoryCreated,
			"setstat": AttributesChanged, "symlink": FileWritten, "rename": FileWritten}[verb]
		if !ok || rest == "" {
			continue
		}
		first, second, two := strings.Cut(rest, " ")
		switch {
		case verb == "rename" && two:
			r.note(FileWritten, join(unknown, second), "sftp", span, "")
			r.note(FileRemoved, join(unknown, first), "sftp", span, "")
		case verb == "symlink" && two:
			r.note(sort, join(unknown, second), "sftp", span, "")
		default:
			r.note(sort, join(unknown, rest), "sftp", span, "")
		}
	}
}

// judge weighs the effects.
func (r *reading) judge(a Action, text string, changedBefore bool) Judgement {
	r.undo()
	r.guess()
	j := Judgement{Kind: Discovery, Degraded: r.degraded}
	kinds := map[Kind]bool{}
	changes := 0
	for i := range r.effects {
		e := &r.effects[i]
		switch k := e.Sort.Kind(); {
		case e.Changes():
			kinds[k] = true
			changes++
		case k == Validation && !e.Scratch: // looking at an experiment is no check
			kinds[k] = true
		}
		e.Target = shown(e.target)
		if strings.Trim(e.Target, "…/") == "" {
			e.Target = ""
		}
		e.Shows = clip(strings.TrimSpace(text[e.Span.Start:e.Span.End]), 160)
	}
	j.Effects = r.effects
	if len(j.Effects) > maxEffects {
		// Over the bound there are only changes; the first of them tell.
		j.Effects = j.Effects[:maxEffects]
	}
	if !changedBefore && changes == 0 {
		delete(kinds, Validation)
	}
	for _, k := range []Kind{Mutation, Lifecycle, Validation} {
		if !kinds[k] {
			continue
		}
		if j.Kind == Discovery {
			j.Kind = k
		} else {
			j.Also = append(j.Also, k)
		}
	}
	j.Changed = changes > 0 && !r.refused(a, changes)
	return j
}

// refused tells whether a failed action's only change cannot have happened: a
// file tool that says so, or a single write whose exit status is the action's.
func (r *reading) refused(a Action, changes int) bool {
	if a.Success {
		return false
	}
	if _, file := a.fileTool(); file {
		return true
	}
	last := len(r.effects) - 1
	return changes == 1 && r.effects[last].Changes() && r.effects[last].Sort.Kind() == Mutation && r.effects[last].Span.End >= r.limit-2
}

// undo marks what the action takes back itself: files that it made and removes,
// processes that it began and kills. A file that it moved on is not left either.
func (r *reading) undo() {
	for i := range r.effects {
		e := &r.effects[i]
		switch e.Sort {
		case FileRemoved:
			for k := i - 1; k >= 0; k-- {
				f := &r.effects[k]
				if (f.Sort == FileWritten || f.Sort == DirectoryCreated || f.Sort == AttributesChanged || f.Sort == DataChanged) && inside(f.target, e.target) {
					f.Undone, e.Undone = true, true
				}
			}
		case ProcessKilled:
			if strings.Contains(e.target, background) || strings.HasPrefix(e.target, "%") {
				e.Undone = true
				for k := range i {
					if r.effects[k].Sort == ProcessStarted {
						r.effects[k].Undone = true
					}
				}
			}
		}
	}
}

// guess settles, in a text that was cut, effects on a target that the missing
// part would have told: where every known file of the action is scratch, so is
// that one. (A function that fills an experiment's database, say, whose calls
// were cut off.)
func (r *reading) guess() {
	if !r.degraded {
		return
	}
	temporary := false
	for _, e := range r.effects {
		switch e.Sort {
		case FileWritten, FileRemoved, DirectoryCreated, DataChanged, AttributesChanged:
			if e.target != unknown && !e.Scratch {
				return
			}
			temporary = temporary || e.Scratch
		}
	}
	for i := range r.effects {
		if e := &r.effects[i]; temporary && e.target == unknown && e.Sort.Kind() != Lifecycle {
			e.Scratch = true
		}
	}
}

// inside tells whether a path is another, or lies below it; patterns match as
// the shell would.
func inside(p, root string) bool {
	if strings.Contains(root, unknown) {
		// Two unknown names need not be the same one; a temporary file's name
		// and the working directory are.
		known := strings.TrimPrefix(strings.ReplaceAll(root, temporary, ""), unknown+"/")
		if strings.Contains(known, unknown) || root == unknown {
			return false
		}
	}
	if p == root || strings.HasPrefix(p, root+"/") {
		return root != ""
	}
	if hasGlob(root) {
		ok, err := path.Match(root, p)
		return ok && err == nil
	}
	return false
}
