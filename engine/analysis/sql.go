package analysis

import (
	"strings"
)

// SQL is read as tokens: enough to tell reading from writing and to see which
// values a statement names, for every dialect.

type sqlToken struct {
	text   string // upper case for words; strings without quotes
	start  int
	end    int
	quoted bool // a string or quoted name
}

// sqlTokens splits SQL. Comments vanish; an unclosed string ends with the text.
func sqlTokens(s string) []sqlToken {
	var out []sqlToken
	for i := 0; i < len(s); {
		start := i
		switch c := s[i]; {
		case c == '-' && strings.HasPrefix(s[i:], "--"), c == '#' && i > 0 && s[i-1] == '\n':
			i = until(s, i, "\n")
		case c == '/' && strings.HasPrefix(s[i:], "/*"):
			i = until(s, i+2, "*/")
		case c == '\'' || c == '"' || c == '`':
			var b strings.Builder
			for i++; i < len(s); i++ {
				if s[i] == c {
					if i+1 < len(s) && s[i+1] == c {
						i++
					} else {
						break
					}
				}
				b.WriteByte(s[i])
			}
			i = min(i+1, len(s))
			out = append(out, sqlToken{b.String(), start, i, true})
		case wordByte(c):
			for i < len(s) && wordByte(s[i]) {
				i++
			}
			out = append(out, sqlToken{strings.ToUpper(s[start:i]), start, i, false})
		case c == ' ' || c == '\t' || c == '\n' || c == '\r':
			i++
		default:
			i++
			out = append(out, sqlToken{s[start:i], start, i, false})
		}
	}
	return out
}

func until(s string, from int, mark string) int {
	if i := strings.Index(s[min(from, len(s)):], mark); i >= 0 {
		return min(from, len(s)) + i + len(mark)
	}
	return len(s)
}

func wordByte(c byte) bool {
	return c == '_' || c == 0 || c >= 0x80 || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// sqlWrites are the verbs that change data, schema, accounts or the server.
var sqlWrites = map[string]Sort{
	"INSERT": DataChanged, "UPDATE": DataChanged, "DELETE": DataChanged, "REPLACE": DataChanged, "MERGE": DataChanged, "UPSERT": DataChanged,
	"CREATE": DataChanged, "DROP": DataChanged, "ALTER": DataChanged, "TRUNCATE": DataChanged, "VACUUM": DataChanged, "REINDEX": DataChanged,
	"GRANT": DataChanged, "REVOKE": DataChanged, "CALL": DataChanged, "DO": DataChanged, "LOAD": DataChanged, "RENAME": DataChanged,
	"REFRESH": DataChanged, "CLUSTER": DataChanged, "COMMENT": DataChanged, "IMPORT": DataChanged, "PURGE": DataChanged, "RESET": ServiceCommand,
	"CHANGE": ServiceCommand, "STOP": ServiceCommand, "START": ServiceCommand, "FLUSH": ServiceCommand, "CHECKPOINT": ServiceCommand, "KILL": ServiceCommand,
}

// sqlFunctions change something although they are called by SELECT.
var sqlFunctions = map[string]Sort{
	"PG_PROMOTE": ServiceCommand, "PG_RELOAD_CONF": ServiceCommand, "PG_TERMINATE_BACKEND": ServiceCommand, "PG_CANCEL_BACKEND": ServiceCommand,
	"PG_SWITCH_WAL": ServiceCommand, "PG_WAL_REPLAY_PAUSE": ServiceCommand, "PG_WAL_REPLAY_RESUME": ServiceCommand, "SETVAL": DataChanged,
	"NEXTVAL": DataChanged, "PG_CREATE_PHYSICAL_REPLICATION_SLOT": DataChanged, "PG_CREATE_LOGICAL_REPLICATION_SLOT": DataChanged,
	"PG_DROP_REPLICATION_SLOT": DataChanged, "LO_IMPORT": DataChanged, "WRITEFILE": DataChanged, "LOAD_EXTENSION": DataChanged,
}

// lastingPragmas are the settings that SQLite keeps in the database file; the
// others last as long as the connection.
var lastingPragmas = set1("JOURNAL_MODE USER_VERSION APPLICATION_ID AUTO_VACUUM PAGE_SIZE ENCODING SCHEMA_VERSION WRITABLE_SCHEMA")

// database is what SQL is sent to.
type database struct {
	target string // path, or "" for a server
	by     string
}

// sql notes what the statements of a text do. place maps to the action's text.
// Writes that the same text rolls back are undone.
func (r *reading) sql(c code, db database) {
	tokens := sqlTokens(c.text)
	begun := -1 // number of effects at BEGIN
	for i := 0; i < len(tokens); {
		j, depth := i, 0
		compound := false // a trigger's body holds semicolons
		for ; j < len(tokens); j++ {
			switch t := tokens[j]; {
			case t.quoted:
			case t.text == "(":
				depth++
			case t.text == ")":
				depth--
			case t.text == "BEGIN" && j > i:
				compound = true
			case t.text == "END" && compound:
				compound = false
			}
			if tokens[j].text == ";" && !tokens[j].quoted && !compound {
				break
			}
		}
		st := tokens[i:j]
		i = j + 1
		if len(st) == 0 || !r.spend() {
			continue
		}
		switch st[0].text {
		case "BEGIN":
			begun = len(r.effects)
			continue
		case "START":
			if len(st) > 1 && st[1].text == "TRANSACTION" {
				begun = len(r.effects)
				continue
			}
		case "COMMIT", "END":
			begun = -1
			continue
		case "ROLLBACK":
			if begun >= 0 && !(len(st) > 1 && st[1].text == "TO") {
				for k := begun; k < len(r.effects); k++ {
					if r.effects[k].Sort == DataChanged {
						r.effects[k].Undone = true
					}
				}
				begun = -1
			}
			continue
		}
		sort := sqlSort(st)
		if sort == "" {
			continue
		}
		start, end := st[0].start, st[len(st)-1].end
		r.note(sort, db.target, db.by, c.span(start, end), c.via)
		if sort == DataChanged && st[0].text == "DELETE" && r.ownRow(st) && len(r.effects) > 0 {
			r.effects[len(r.effects)-1].Undone = true
		}
	}
}

// sqlSort is what one statement does, or "" when it does nothing of note.
func sqlSort(st []sqlToken) Sort {
	verb := st[0].text
	if st[0].quoted {
		return ""
	}
	at := 0
	for at < len(st)-1 && (verb == "(" || verb == "EXPLAIN") {
		if verb == "EXPLAIN" { // only EXPLAIN ANALYZE executes
			analyse := false
			for _, t := range st[1:min(len(st), 4)] {
				analyse = analyse || t.text == "ANALYZE" || t.text == "ANALYSE"
			}
			if !analyse {
				return DataDescribed
			}
			at++
		}
		at++
		verb = st[min(at, len(st)-1)].text
	}
	has := func(word string) int {
		for i, t := range st {
			if t.text == word && !t.quoted {
				return i
			}
		}
		return -1
	}
	switch verb {
	case "WITH": // what follows the named queries decides; they may write, too
		for _, w := range []string{"INSERT", "UPDATE", "DELETE", "REPLACE", "MERGE"} {
			if has(w) > 0 {
				return DataChanged
			}
		}
		return DataRead
	case "CREATE":
		if has("TEMP") == 1 || has("TEMPORARY") == 1 {
			return ""
		}
	case "PRAGMA":
		name := ""
		for _, t := range st[1:] {
			if t.text == "=" || t.text == "(" {
				break
			}
			name = t.text
		}
		if name == "WAL_CHECKPOINT" || lastingPragmas[name] && has("=") > 0 {
			return DataChanged
		}
		return DataDescribed
	case "SET":
		if len(st) > 1 && (st[1].text == "GLOBAL" || st[1].text == "PERSIST") || has("@@GLOBAL") > 0 {
			return ServiceCommand
		}
		return ""
	case "COPY":
		if has("FROM") > 0 {
			return DataChanged
		}
		return DataRead
	case "SELECT", "VALUES", "TABLE":
		for i, t := range st {
			if sort, ok := sqlFunctions[t.text]; ok && !t.quoted && i+1 < len(st) && st[i+1].text == "(" {
				return sort
			}
		}
		if into := has("INTO"); into > 0 && into < has("FROM") {
			return DataChanged // makes a table or a file
		}
		// Without a table nothing of the data is looked at.
		if has("FROM") < 0 {
			return DataDescribed
		}
		return DataRead
	case "SHOW", "DESCRIBE", "DESC":
		return DataDescribed
	case "START", "STOP", "RESET", "CHANGE", "KILL", "FLUSH":
		return ServiceCommand
	}
	if sort, ok := sqlWrites[verb]; ok {
		if verb == "REPLACE" && len(st) > 1 && st[1].text == "(" {
			return ""
		}
		return sort
	}
	return ""
}

// ownRow tells whether a DELETE only takes back what the same action put there
// through a service: each value that it names was part of such a request.
func (r *reading) ownRow(st []sqlToken) bool {
	named := false
	for i, t := range st {
		value := t.quoted && t.text != "" && st[i].start >= 0
		if !value {
			continue
		}
		if strings.Contains(t.text, unknown) || len(t.text) < 3 {
			return false
		}
		found := false
		for _, e := range r.effects {
			found = found || e.Sort == HTTPWrite && strings.Contains(e.target, t.text)
		}
		if !found {
			return false
		}
		named = true
	}
	return named
}
