package analysis

import "strings"

// foreignCalls are the calls by which one-line programs in JavaScript, Ruby and
// Perl change files; each with the number of the argument that is the target.
var foreignCalls = map[string]struct {
	sort Sort
	n    int
}{
	"writeFileSync": {FileWritten, 0}, "writeFile": {FileWritten, 0}, "appendFileSync": {FileWritten, 0}, "appendFile": {FileWritten, 0},
	"unlinkSync": {FileRemoved, 0}, "unlink": {FileRemoved, 0}, "rmSync": {FileRemoved, 0}, "rm_f": {FileRemoved, 0}, "rm_rf": {FileRemoved, 0},
	"renameSync": {FileWritten, 1}, "rename": {FileWritten, 1}, "copyFileSync": {FileWritten, 1}, "cp": {FileWritten, 1}, "mv": {FileWritten, 1},
	"mkdirSync": {DirectoryCreated, 0}, "mkdir": {DirectoryCreated, 0}, "mkdir_p": {DirectoryCreated, 0}, "rmdir": {FileRemoved, 0},
	"chmodSync": {AttributesChanged, 0}, "symlinkSync": {FileWritten, 1}, "binwrite": {FileWritten, 0},
}

// foreign reads code of a language that is not followed, as tokens: calls by
// name with texts as arguments. Its strings and comments are near enough to
// Python's.
func (c *call) foreign(src code) {
	if len(src.text) > maxShell || !c.enter() {
		return
	}
	defer c.leave()
	for _, l := range pyLines(src.text) {
		for i, t := range l.tokens {
			if t.kind != pyName {
				continue
			}
			var given []string
			end := t.end
			for _, a := range l.tokens[i+1 : min(i+8, len(l.tokens))] {
				if a.text == ")" || a.text == ";" {
					break
				}
				end = a.end
				if a.kind == pyString {
					given = append(given, src.text[a.from:a.to])
				}
			}
			at := src.span(t.start, end)
			switch {
			case (t.text == "execSync" || t.text == "system" || t.text == "spawnSync") && len(given) > 0:
				c.run(code{text: given[0], fixed: &at, via: src.via}, newScope(), nil)
			case t.text == "open" && len(given) > 1 && strings.ContainsAny(given[1], ">wa+"),
				t.text == "write" && i > 1 && l.tokens[i-2].text == "File":
				target := unknown
				if len(given) > 0 {
					target = given[len(given)-1]
					if t.text == "write" || !strings.ContainsAny(given[1], ">") {
						target = given[0]
					}
				}
				c.note(FileWritten, c.resolve(target), c.name+" "+t.text, at)
			default:
				if f, ok := foreignCalls[t.text]; ok {
					target := unknown
					if f.n < len(given) {
						target = given[f.n]
					}
					c.note(f.sort, c.resolve(target), c.name+" "+t.text, at)
				}
			}
		}
	}
}
