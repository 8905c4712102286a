package transcript

import (
	"path"
	"strings"

	"refbox/engine/transcript/skim"
)

// classes are the names that harnesses give their tools, in lower case.
var classes = map[string]Class{}

func init() {
	for class, names := range map[Class]string{
		Shell: `bash shell sh exec exec_command run run_shell_command run_command execute_bash execute_command terminal
			local_shell local_shell_call container.exec bash_command cmd run_terminal_cmd shell_command unified_exec
			execute_shell bash_session terminaltool powershell command sandbox.exec`,
		Code: `python ipython run_ipython execute_ipython_cell python_exec jupyter code_interpreter execute_python python_tool
			run_python exec_python`,
		Read:  `read read_file view cat open open_file readfile view_file view_image notebookread sandbox.read_file`,
		Write: `write write_file create create_file writefile write_to_file sandbox.write_file`,
		Edit: `edit multiedit multi_edit edit_file apply_patch patch notebookedit str_replace insert replace replace_in_file
			str_replace_editor str_replace_based_edit_tool file_editor fileeditortool`,
		Search: `glob grep find search ls list list_dir list_files list_directory rg file_search codebase_search search_files
			search_dir search_file find_file tool_search`,
		Plan:     `todowrite todoread update_plan plan todo todo_write todo_read task_tracker think tasktracker`,
		Browse:   `webfetch websearch web_search web_fetch browse browse_interactive fetch browser web_search_call`,
		Delegate: `task agent subagent delegate spawn_agent dispatch_agent send_input wait_agent`,
		Finish:   `finish submit attempt_completion complete mark_complete done`,
	} {
		for name := range strings.FieldsSeq(names) {
			classes[name] = class
		}
	}
}

// classOf sorts a tool by its name.
func classOf(tool string) Class {
	t := strings.ToLower(tool)
	t = strings.TrimPrefix(t, "functions.")
	if i := strings.LastIndex(t, "__"); i >= 0 && strings.HasPrefix(t, "mcp__") {
		t = t[i+2:]
	}
	if c, ok := classes[t]; ok {
		return c
	}
	if strings.HasPrefix(t, "web_browser") || strings.HasPrefix(t, "browser_") {
		return Browse
	}
	return Other
}

func isEditor(tool string) bool {
	switch strings.ToLower(tool) {
	case "str_replace_editor", "str_replace_based_edit_tool", "file_editor", "fileeditortool":
		return true
	}
	return false
}

// refine reads the arguments of a tool that does several things. r stands before
// them and has passed them afterwards.
func refine(tool string, r *skim.Reader) Class {
	class := classOf(tool)
	if !isEditor(tool) {
		r.Skip()
		return class
	}
	for key := range r.Keys() {
		if key == "command" {
			switch r.Str(32) {
			case "view":
				class = Read
			case "create":
				class = Write
			}
		}
	}
	return class
}

// bodies collects the parts of a step, each up to a limit.
type bodies struct {
	f     *Full
	limit int
	// private: the step is one that is known to be reasoning. In others reasoning is
	// named only.
	private bool
	// resolve replaces a text that refers to another place in the record; nil in
	// most formats.
	resolve func(ref string) (s string, size int64, ok bool)
}

func newBodies(f *Full, e entry, limit int) *bodies {
	return &bodies{f: f, limit: limit, private: e.has(Private)}
}

func (b *bodies) add(role Role, label, raw string, size int64) {
	if size == 0 && role != PartOutput {
		return
	}
	if b.resolve != nil {
		if s, n, ok := b.resolve(raw); ok {
			raw, size = s, n
		}
	}
	b.f.Parts = append(b.f.Parts, Part{role, label, Text{raw, max(size, int64(len(raw)))}})
}

// text takes the string that r stands before.
func (b *bodies) text(r *skim.Reader, role Role, label string) {
	s, n := r.Text(b.limit)
	b.add(role, label, s, n)
}

// json takes the value that r stands before, as it stands.
func (b *bodies) json(r *skim.Reader, role Role, label string) {
	raw, n := r.Raw(b.limit)
	s := string(raw)
	if role == PartData {
		s = seal(s)
	}
	if len(s) != len(raw) && int64(len(raw)) == n {
		n = int64(len(s))
	}
	b.add(role, label, s, n)
}

// say takes a text made here.
func (b *bodies) say(role Role, label, s string) { b.add(role, label, s, int64(len(s))) }

// sealed names content that is not shown.
func (b *bodies) sealed(label string, size int64) {
	b.f.Parts = append(b.f.Parts, Part{PartSealed, label, Text{size: size}})
}

// maxParts bounds the parts of one step.
const maxParts = 2000

// call takes a call's object, of which the keys give its id and its tool's name.
// The arguments may come first, and are read when the name is known.
func (b *bodies) call(r *skim.Reader, class Class, id, tool string) {
	name, args := "", int64(-1)
	for key := range r.Keys() {
		switch key {
		case id:
			b.f.CallID = r.Str(200)
		case tool:
			name = r.Str(200)
		case "arguments":
			args = r.Offset()
		}
	}
	r.Back(args, func() { b.arguments(name, class, r) })
}

// arguments takes a call's arguments: an object, or a string that holds one.
func (b *bodies) arguments(tool string, class Class, r *skim.Reader) {
	if r.Kind() == skim.String {
		s, n := r.Text(max(b.limit, 64<<10))
		inner := skim.Bytes([]byte(s), 0)
		if inner.Kind() == skim.Object {
			b.object(tool, class, inner)
			return
		}
		b.freeform(tool, class, s, n)
		return
	}
	if r.Kind() != skim.Object {
		b.json(r, PartInput, "")
		return
	}
	b.object(tool, class, r)
}

// freeform is an argument that is not JSON: shell text, a patch, code.
func (b *bodies) freeform(tool string, class Class, s string, n int64) {
	role := PartInput
	switch {
	case class == Shell:
		role = PartCommand
	case class == Code:
		role = PartCode
	case class == Edit, strings.HasPrefix(s, "*** Begin Patch"):
		role = PartPatch
	}
	b.add(role, "", s, n)
}

func (b *bodies) object(tool string, class Class, r *skim.Reader) {
	start := r.Offset()
	editor := isEditor(tool)
	for key := range r.Keys() {
		if len(b.f.Parts) > maxParts {
			continue
		}
		switch key {
		case "command", "cmd", "script", "commands", "bash_command", "keystrokes", "chars":
			switch {
			case editor:
			case class == Code:
				b.text(r, PartCode, "python")
			case r.Kind() == skim.Array:
				b.vector(r)
			case r.Kind() == skim.String:
				b.text(r, PartCommand, "")
			}
		case "code":
			b.text(r, PartCode, "python")
		case "description", "explanation", "justification":
			b.text(r, PartDescription, "")
		case "file_path", "filePath", "path", "filename", "notebook_path", "file", "target_file":
			if r.Kind() == skim.String {
				b.text(r, PartPath, key)
			}
		case "pattern", "query", "url", "regex":
			b.text(r, PartQuery, key)
		case "old_string", "oldString", "old_str", "old_content", "search":
			if class == Edit {
				b.text(r, PartOld, "")
			}
		case "new_string", "newString", "new_str", "new_content", "new_source", "insert_text", "replacement":
			if class == Edit || class == Write {
				b.text(r, PartNew, "")
			}
		case "content", "file_text", "contents":
			if class == Write || class == Edit {
				b.text(r, PartNew, "")
			}
		case "edits":
			if r.Kind() == skim.Array {
				for range r.Items() {
					if len(b.f.Parts) <= maxParts {
						b.object(tool, Edit, r)
						b.f.Parts = b.f.Parts[:len(b.f.Parts)-1] // each edit's own JSON
					}
				}
			}
		case "patch", "patchText", "diff":
			b.text(r, PartPatch, "")
		case "input":
			if class == Edit && r.Kind() == skim.String {
				b.text(r, PartPatch, "")
			}
		case "workdir", "cwd", "working_dir", "working_directory":
			b.f.WorkDir = r.Str(4096)
		}
	}
	if r.Err() != nil {
		return
	}
	end := r.Offset()
	r.Return(start)
	b.json(r, PartInput, "")
	if r.Err() == nil && r.Offset() != end {
		r.Return(end)
	}
}

// vector takes an argument vector: ["bash", "-lc", text] is the text; others
// are quoted.
func (b *bodies) vector(r *skim.Reader) {
	var args []string
	total := 0
	for range r.Items() {
		s := r.Str(b.limit)
		if total += len(s); total <= 4*b.limit && len(args) < 10_000 {
			args = append(args, s)
		}
	}
	b.say(PartCommand, "", quoteVector(args))
}

func quoteVector(args []string) string {
	if len(args) == 3 && strings.HasPrefix(args[1], "-") && strings.HasSuffix(args[1], "c") {
		switch path.Base(args[0]) {
		case "bash", "sh", "zsh", "dash", "ash":
			return args[2]
		}
	}
	quoted := make([]string, len(args))
	for i, a := range args {
		quoted[i] = a
		if a == "" || strings.ContainsFunc(a, unsafe) {
			quoted[i] = "'" + strings.ReplaceAll(a, "'", `'\''`) + "'"
		}
	}
	return strings.Join(quoted, " ")
}

func unsafe(c rune) bool {
	return !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.ContainsRune("%+,-./:=@_", c))
}

// content takes what messages and results hold: a string, or a list of blocks of
// text and media.
func (b *bodies) content(r *skim.Reader, role Role) {
	switch r.Kind() {
	case skim.String:
		b.text(r, role, "")
	case skim.Array:
		for range r.Items() {
			if len(b.f.Parts) > maxParts {
				continue
			}
			if r.Kind() == skim.String {
				b.text(r, role, "")
				continue
			}
			b.piece(r, role)
		}
	case skim.Object:
		b.piece(r, role)
	case skim.Null, skim.End:
		r.Skip()
	default:
		b.json(r, role, "")
	}
}

// piece takes one block of a list of content.
func (b *bodies) piece(r *skim.Reader, role Role) {
	if r.Kind() != skim.Object {
		b.json(r, PartData, "")
		return
	}
	var kind, media string
	at := r.Offset()
	textAt, reasonAt, dataSize := int64(-1), int64(-1), int64(0)
	for key := range r.Keys() {
		switch key {
		case "type":
			kind = r.Str(64)
		case "text", "input_text", "output_text", "content":
			if r.Kind() == skim.String || textAt < 0 {
				textAt = r.Offset()
			}
		case "thinking", "reasoning", "summary":
			reasonAt = r.Offset()
		case "media_type", "mimeType", "mime_type", "mediaType", "format":
			media = r.Str(100)
		case "source", "image_url", "image", "data", "audio", "video", "document":
			from := r.Offset()
			if r.Kind() == skim.Object {
				for k := range r.Keys() {
					switch k {
					case "media_type", "mimeType":
						media = r.Str(100)
					}
				}
			} else {
				r.Skip()
			}
			dataSize = r.Offset() - from
		}
	}
	if r.Err() != nil {
		return
	}
	end := r.Offset()
	switch {
	case (kind == "thinking" || kind == "reasoning") && !b.private:
		b.sealed("private reasoning", end-at)
	case kind == "thinking", kind == "reasoning":
		if reasonAt >= 0 {
			r.Return(reasonAt)
			b.content(r, PartReasoning)
		} else if textAt >= 0 {
			r.Return(textAt)
			b.text(r, PartReasoning, "")
		}
	case kind == "redacted_thinking", kind == "encrypted":
		b.sealed(kind, end-at)
	case dataSize > 0 && kind != "text":
		if media == "" {
			media = kind
		}
		b.f.Parts = append(b.f.Parts, Part{PartMedia, media, Text{size: dataSize}})
	case textAt >= 0:
		r.Return(textAt)
		if r.Kind() == skim.String {
			b.text(r, role, "")
		} else {
			b.json(r, role, "")
		}
	default:
		r.Return(at)
		b.json(r, PartData, kind)
	}
	if r.Err() == nil {
		r.Return(end)
	}
}
