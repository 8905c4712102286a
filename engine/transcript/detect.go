package transcript

import (
	"bytes"
	"fmt"
	"io"
	"path"
	"strings"

	"refbox/engine/transcript/skim"
)

// sniffed is what is looked at of a document to find its format.
const (
	sniffed     = 64 << 20 // of one document, until its keys decide
	sniffedHead = 64 << 10
)

// opener makes an importer for a format that was found.
type opener func(x *index, st *store, name string) (importer, error)

// detect finds a record's format by its content and opens it.
func detect(st *store, name string) (*index, importer, error) {
	if name == "." {
		found, in, err := detectFolder(st)
		if err != nil {
			return nil, nil, err
		}
		return openAs(found, st, in)
	}
	b, err := st.open(name)
	if err != nil {
		return nil, nil, err
	}
	defer b.Close()
	found, err := sniff(b, sizeOf(b))
	if err != nil {
		return nil, nil, err
	}
	return openAs(found, st, name)
}

func openAs(format string, st *store, name string) (*index, importer, error) {
	if openers[format] == nil {
		return nil, nil, fmt.Errorf("%s: %w", format, ErrFormat)
	}
	x := newIndex(format, path.Base(name))
	imp, err := openers[format](x, st, name)
	if err != nil {
		return nil, nil, err
	}
	return x, imp, nil
}

var openers map[string]opener

// Filled here because a trial's opener looks the others up.
func init() {
	openers = map[string]opener{
		"claude-code":     openClaude,
		"codex":           openCodex,
		"reference":       openReference,
		"analysis":        openDigest,
		"swe-agent":       openSWE,
		"atif":            openATIF,
		"asciicast":       openCast,
		"inspect-json":    openInspectJSON,
		"harbor":          openHarbor,
		"terminal-bench":  openTerminalBench,
		"openhands":       openOpenHands,
		"openhands-v1":    openOpenHandsDir,
		"opencode":        openOpenCode,
		"opencode-dump":   openOpenCode,
		"opencode-stream": openOpenCodeStream,
		"opencode-tree":   openOpenCodeTree,
		"opencode-sqlite": openOpenCodeDB,
		"heat":            openHeat,
		"inspect-eval":    openInspectEval,
		"asciicast-v1":    openCastV1,
		"codex-exec":      openCodexExec,
	}
}

// sniff finds a file's format by its first bytes and keys.
func sniff(src io.ReaderAt, size int64) (string, error) {
	head := make([]byte, min(size, sniffedHead))
	n, err := src.ReadAt(head, 0)
	if n == 0 {
		if size == 0 {
			return "", fmt.Errorf("the file is empty: %w", ErrFormat)
		}
		return "", err
	}
	head = head[:n]
	if bytes.HasPrefix(head, []byte("PK\x03\x04")) {
		return "inspect-eval", nil
	}
	if bytes.HasPrefix(head, []byte("SQLite format 3\x00")) {
		return "opencode-sqlite", nil
	}
	r := skim.At(src, 0, min(size, sniffed))
	switch r.Kind() {
	case skim.Array:
		if f := sniffList(r); f != "" {
			return f, nil
		}
	case skim.Object:
		if f := sniffDocument(src, size); f != "" {
			return f, nil
		}
		if isLogIndex(src, size) {
			return "", fmt.Errorf("an index of Inspect logs: open one of the logs that it names: %w", ErrFormat)
		}
	}
	// A damaged first line must not hide what the others are.
	for i, line := range bytes.SplitN(bytes.ReplaceAll(head, []byte{0}, nil), []byte("\n"), 42) {
		if i > 40 {
			break
		}
		f := facts{}
		f.read(skim.Bytes(line, 0), nil)
		if format := f.line(); format != "" {
			return format, nil
		}
	}
	return "", fmt.Errorf("nothing in it tells what recorded it: %w", ErrFormat)
}

// facts are the keys of an object, and the values that tell formats apart.
type facts map[string]string

// read collects keys until decide is satisfied.
func (f facts) read(r *skim.Reader, decide func() bool) {
	for key := range r.Keys() {
		if len(f) > 200 {
			continue
		}
		value := "?"
		switch k := r.Kind(); {
		case k == skim.String && (key == "schema_version" || key == "type" || key == "kind" || key == "version" || key == "event"):
			value = r.Str(64)
		case k == skim.Number && (key == "version" || key == "schema_version"):
			raw, _ := r.Raw(16)
			value = string(raw)
		case k == skim.Object && (key == "info" || key == "session"):
			value = "{}"
			for key := range r.Keys() {
				if key == "id" {
					value = r.Str(64)
				}
			}
		case k == skim.Object, k == skim.Array:
			value = string(k)
		}
		f[key] = value
		if decide != nil && decide() {
			return
		}
	}
}

func (f facts) has(keys ...string) bool {
	for _, k := range keys {
		if _, ok := f[k]; !ok {
			return false
		}
	}
	return true
}

func (f facts) any(keys ...string) bool {
	for _, k := range keys {
		if _, ok := f[k]; ok {
			return true
		}
	}
	return false
}

// line tells the format of a file of JSON lines from one line's keys.
func (f facts) line() string {
	switch {
	case (f["version"] == "2" || f["version"] == "3") && f.any("width", "term"):
		return "asciicast"
	case f.has("type", "payload"):
		return "codex"
	case f.has("sequence", "elapsed_ms", "kind"):
		return "heat"
	case f.has("sessionID", "part", "type"):
		return "opencode-stream"
	case f.has("type", "thread_id"), strings.HasPrefix(f["type"], "thread."), strings.HasPrefix(f["type"], "item."), strings.HasPrefix(f["type"], "turn."):
		return "codex-exec"
	case f.has("instance_id", "history"):
		return "openhands"
	case f.any("sessionId", "parentUuid", "isSidechain"), f["type"] == "summary" && f.has("leafUuid"),
		f["type"] == "file-history-snapshot", f["type"] == "queue-operation",
		f.has("session_id") && (f.has("message") || f.has("uuid") || f.any("subtype", "rate_limit_info")): // as --output-format stream-json prints it
		return "claude-code"
	case f.has("id", "timestamp", "instructions") || f["type"] == "message" && f.has("role", "content") || f["type"] == "function_call" && f.has("call_id"):
		return "codex" // before there was an envelope
	}
	return ""
}

// document tells the format of a file that is one object.
func (f facts) document() string {
	switch {
	case strings.HasPrefix(f["schema_version"], "ATIF-v"):
		return "atif"
	case f.has("eval", "status"):
		return "inspect-json"
	case f.any("trajectory", "history") && f.any("info", "environment", "replay_config") && !f.has("instance_id"):
		return "swe-agent"
	case strings.HasPrefix(f["info"], "ses_") && f.has("messages"):
		return "opencode"
	case f.has("session", "messages"):
		return "opencode-dump"
	case f.has("parser_results", "recording_path"), f.has("parser_results", "task_id", "is_resolved"):
		return "terminal-bench"
	case f.any("agent_result", "verifier_result") && f.any("trial_name", "task_name", "agent_info"):
		return "harbor"
	case f["version"] == "1" && f.has("stdout"):
		return "asciicast-v1"
	case f.has("analyzer", "actions"):
		return "analysis"
	case f.has("tool_trace"), f.has("messages", "schema_version") && f.any("outcome", "usage", "timing", "model"):
		return "reference"
	}
	return ""
}

func sniffDocument(src io.ReaderAt, size int64) string {
	f := facts{}
	r := skim.At(src, 0, min(size, sniffed))
	format := ""
	f.read(r, func() bool { format = f.document(); return format != "" })
	if format != "" {
		return format
	}
	if format = f.line(); format != "" {
		return format
	}
	if f.any("trajectory", "history") {
		if f["history"] == "[" {
			return historyFormat(src, size)
		}
		return "openhands"
	}
	return ""
}

// isLogIndex knows the file that lists the headers of the logs beside it.
func isLogIndex(src io.ReaderAt, size int64) bool {
	r := skim.At(src, 0, min(size, sniffedHead))
	for name := range r.Keys() {
		f := facts{}
		f.read(r, nil)
		return (strings.HasSuffix(name, ".json") || strings.HasSuffix(name, ".eval")) && f.has("eval", "status")
	}
	return false
}

// historyFormat tells a SWE-agent history from an OpenHands one by their items.
func historyFormat(src io.ReaderAt, size int64) string {
	r := skim.At(src, 0, min(size, sniffed))
	for key := range r.Keys() {
		if key != "history" && key != "trajectory" {
			continue
		}
		for range r.Items() {
			f := facts{}
			f.read(r, nil)
			if f.any("observation", "source") || f.has("action", "args") {
				return "openhands"
			}
			return "swe-agent"
		}
	}
	return "swe-agent"
}

// sniffList tells what a list of objects is.
func sniffList(r *skim.Reader) string {
	found := ""
	for i := range r.Items() {
		if i > 50 || found != "" {
			return found
		}
		if r.Kind() == skim.Array {
			for range r.Items() {
				f := facts{}
				f.read(r, nil)
				if f.any("action", "observation") {
					found = "openhands"
				}
			}
			continue
		}
		f := facts{}
		f.read(r, nil)
		if f.any("observation") || f.has("action", "args") || f.has("action", "source") {
			found = "openhands"
		}
	}
	return found
}

// detectFolder finds what a folder is, and the name to open in it.
func detectFolder(st *store) (format, name string, err error) {
	if st.isFile("base_state.json") && st.isDir("events") {
		return "openhands-v1", ".", nil
	}
	for _, dir := range []string{".", "storage"} {
		if st.isDir(path.Join(dir, "session")) && (st.isDir(path.Join(dir, "message")) || st.isDir(path.Join(dir, "session/message"))) {
			return "opencode-tree", dir, nil
		}
	}
	for _, name := range []string{"result.json", "results.json", "events.jsonl", "trajectory.json", "agent/trajectory.json", "opencode.db"} {
		b, err := st.open(name)
		if err != nil {
			continue
		}
		format, err := sniff(b, sizeOf(b))
		b.Close()
		if err == nil && openers[format] != nil {
			return format, name, nil
		}
	}
	return "", "", fmt.Errorf("a folder that is not a trial, a heat, a conversation or a storage tree; open one of its files: %w", ErrFormat)
}
