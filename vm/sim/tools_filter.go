package sim

import (
	"io"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"refbox/vm/sim/internal/memfs"
)

// expression compiles a basic or extended POSIX expression, nearly.
func expression(pat string, extended, fixedText, fold bool) (*regexp.Regexp, error) {
	switch {
	case fixedText:
		pat = regexp.QuoteMeta(pat)
	case !extended:
		pat = basicToExtended(pat)
	}
	if fold {
		pat = "(?i)" + pat
	}
	return regexp.Compile(pat)
}

// basicToExtended swaps the meaning of escaped and plain operators.
func basicToExtended(pat string) string {
	var s strings.Builder
	for i := 0; i < len(pat); i++ {
		c := pat[i]
		switch {
		case c == '[':
			end := i + 1
			if end < len(pat) && pat[end] == '^' {
				end++
			}
			if end < len(pat) && pat[end] == ']' {
				end++
			}
			for end < len(pat) && pat[end] != ']' {
				if strings.HasPrefix(pat[end:], "[:") {
					if j := strings.Index(pat[end:], ":]"); j > 0 {
						end += j + 1
					}
				}
				end++
			}
			s.WriteString(strings.ReplaceAll(pat[i:min(end+1, len(pat))], `\`, `\\`))
			i = end
		case c == '\\' && i+1 < len(pat):
			i++
			if strings.IndexByte("(){}|+?", pat[i]) >= 0 {
				s.WriteByte(pat[i])
			} else {
				s.WriteString(pat[i-1 : i+1])
			}
		case strings.IndexByte("(){}|+?", c) >= 0:
			s.WriteString(`\` + string(c))
		case c == '*' && (i == 0 || pat[i-1] == '(' || i == 1 && pat[0] == '^'):
			s.WriteString(`\*`)
		default:
			s.WriteByte(c)
		}
	}
	return s.String()
}

func toolGrep(t *run) int {
	opts, rest := t.flags("emABC--include --exclude ")
	pat, ok := opts["e"]
	if !ok {
		if len(rest) == 0 {
			return t.fail(2, "no pattern")
		}
		pat, rest = rest[0], rest[1:]
	}
	if has(opts, "x") {
		pat = "^" + pat + "$"
	}
	if has(opts, "w") {
		pat = `\b` + pat + `\b`
	}
	re, err := expression(pat, has(opts, "E", "P"), has(opts, "F"), has(opts, "i"))
	if err != nil {
		return t.fail(2, "%v", err)
	}
	names := rest
	recursive := has(opts, "r", "R")
	if recursive {
		names = nil
		if len(rest) == 0 {
			rest = []string{"."}
		}
		for _, root := range rest {
			abs := strings.TrimSuffix(t.Path(root), "/")
			t.b.walk(abs, 0, func(at string, st memfs.Info) {
				if in, ok := opts["include"]; ok {
					if match, _ := path.Match(in, path.Base(at)); !match {
						return
					}
				}
				if st.Mode().IsRegular() {
					names = append(names, root+strings.TrimPrefix(at, abs))
				}
			})
		}
		if len(names) == 0 {
			return 1
		}
	}
	limit := 1 << 30
	if m, ok := opts["m"]; ok {
		limit, _ = strconv.Atoi(m)
	}
	context := func(k string) int {
		n, _ := strconv.Atoi(opts[k])
		c, _ := strconv.Atoi(opts["C"])
		return max(n, c)
	}
	before, after := context("B"), context("A")
	matched := false
	prefix := len(names) > 1 || recursive || has(opts, "H")
	quiet := has(opts, "q", "quiet", "silent")
	code := t.inputs(names, func(name string, r io.Reader) {
		label := ""
		if prefix && !has(opts, "h") {
			label = name + ":"
		}
		count, show := 0, 0
		var held []string
		n := 0
		for sc := newScanner(r); sc.Scan() && count < limit; {
			n++
			line := sc.Text()
			num := ""
			if has(opts, "n") {
				num = strconv.Itoa(n) + ":"
			}
			if re.MatchString(line) == has(opts, "v") {
				if show > 0 && !quiet {
					show--
					t.printf("%s%s%s\n", label, num, line)
				} else if before > 0 {
					held = append(held, label+num+line)
					held = held[max(0, len(held)-before):]
				}
				continue
			}
			matched = true
			count++
			if quiet || has(opts, "l", "c", "L") {
				continue
			}
			for _, h := range held {
				t.printf("%s\n", h)
			}
			held, show = nil, after
			if has(opts, "o") {
				for _, m := range re.FindAllString(line, -1) {
					t.printf("%s%s%s\n", label, num, m)
				}
				continue
			}
			t.printf("%s%s%s\n", label, num, line)
		}
		switch {
		case has(opts, "c"):
			t.printf("%s%d\n", label, count)
		case has(opts, "l") && count > 0, has(opts, "L") && count == 0:
			t.printf("%s\n", name)
		}
	})
	switch {
	case matched && (code == 0 || quiet):
		return 0
	case code != 0:
		return 2
	}
	return 1
}

// ranges reads "1,3-5,7-".
func ranges(s string) func(i int) bool {
	type span struct{ from, to int }
	var spans []span
	for part := range strings.SplitSeq(s, ",") {
		a, b, dash := strings.Cut(part, "-")
		from, _ := strconv.Atoi(a)
		to := from
		if dash {
			from = max(from, 1)
			if to, _ = strconv.Atoi(b); b == "" {
				to = 1 << 30
			}
		}
		spans = append(spans, span{from, to})
	}
	return func(i int) bool {
		return slices.ContainsFunc(spans, func(s span) bool { return i >= s.from && i <= s.to })
	}
}

func toolCut(t *run) int {
	opts, rest := t.flags("dfcb")
	delim, ok := opts["d"]
	if !ok {
		delim = "\t"
	}
	lines, code := t.lines(rest)
	for _, l := range lines {
		if f, ok := opts["f"]; ok {
			parts := strings.Split(l, delim)
			if len(parts) == 1 {
				if !has(opts, "s") {
					t.printf("%s\n", l)
				}
				continue
			}
			in := ranges(f)
			var kept []string
			for i, p := range parts {
				if in(i + 1) {
					kept = append(kept, p)
				}
			}
			t.printf("%s\n", strings.Join(kept, delim))
			continue
		}
		in := ranges(opts["c"] + opts["b"])
		var kept []byte
		for i := range len(l) {
			if in(i + 1) {
				kept = append(kept, l[i])
			}
		}
		t.printf("%s\n", kept)
	}
	return code
}

// charset expands "a-z", "\n" and "[:upper:]".
func charset(s string) []byte {
	var set []byte
	classes := map[string]string{"upper": "A-Z", "lower": "a-z", "digit": "0-9", "alpha": "A-Za-z", "alnum": "A-Za-z0-9", "space": " \\t\\n\\r", "punct": "!-/:-@[-`{-~"}
	for name, v := range classes {
		s = strings.ReplaceAll(s, "[:"+name+":]", v)
	}
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c == '\\' && i+1 < len(s) {
			i++
			if e, ok := map[byte]byte{'n': '\n', 't': '\t', 'r': '\r', '0': 0, '\\': '\\'}[s[i]]; ok {
				c = e
			} else {
				c = s[i]
			}
		}
		if i+2 < len(s) && s[i+1] == '-' && s[i+2] >= c {
			for x := int(c); x <= int(s[i+2]); x++ {
				set = append(set, byte(x))
			}
			i += 2
			continue
		}
		set = append(set, c)
	}
	return set
}

func toolTr(t *run) int {
	opts, rest := t.flags("")
	if len(rest) == 0 {
		return t.fail(1, "missing operand")
	}
	from := charset(rest[0])
	var to []byte
	if len(rest) > 1 {
		to = charset(rest[1])
	}
	var in [256]bool
	for _, c := range from {
		in[c] = true
	}
	if has(opts, "c", "C") {
		for i := range in {
			in[i] = !in[i]
		}
	}
	data, _ := io.ReadAll(io.LimitReader(t.in, 64<<20))
	out := make([]byte, 0, len(data))
	squeeze := in
	if len(rest) > 1 {
		squeeze = [256]bool{}
		for _, c := range to {
			squeeze[c] = true
		}
	}
	for _, c := range data {
		if in[c] {
			if has(opts, "d") {
				continue
			}
			if len(to) > 0 {
				i := slices.Index(from, c)
				if has(opts, "c", "C") || i < 0 {
					i = len(to) - 1
				}
				c = to[min(i, len(to)-1)]
			}
		}
		if has(opts, "s") && squeeze[c] && len(out) > 0 && out[len(out)-1] == c {
			continue
		}
		out = append(out, c)
	}
	_, _ = t.out.Write(out)
	return 0
}

func toolSort(t *run) int {
	opts, rest := t.flags("kto")
	lines, code := t.lines(rest)
	key := func(l string) string {
		k, ok := opts["k"]
		if !ok {
			return l
		}
		k, _, _ = strings.Cut(k, ",")
		n, _ := strconv.Atoi(strings.TrimRight(k, "nrV"))
		fields := strings.Fields(l)
		if sep, ok := opts["t"]; ok {
			fields = strings.Split(l, sep)
		}
		if n < 1 || n > len(fields) {
			return ""
		}
		return fields[n-1]
	}
	numeric := has(opts, "n") || strings.Contains(opts["k"], "n")
	slices.SortStableFunc(lines, func(a, b string) int {
		c := strings.Compare(key(a), key(b))
		if numeric {
			x, y := leadingNumber(key(a)), leadingNumber(key(b))
			switch {
			case x < y:
				c = -1
			case x > y:
				c = 1
			}
		}
		if has(opts, "r") {
			return -c
		}
		return c
	})
	if has(opts, "u") {
		lines = slices.Compact(lines)
	}
	text := strings.Join(lines, "\n")
	if len(lines) > 0 {
		text += "\n"
	}
	if o, ok := opts["o"]; ok {
		if err := t.b.fs.WriteFile(t.Path(o), []byte(text), 0o644); err != nil {
			return t.fail(2, "%s: %s", o, errText(err))
		}
		return code
	}
	t.printf("%s", text)
	return code
}

func leadingNumber(s string) float64 {
	s = strings.TrimSpace(s)
	end := 0
	for end < len(s) && strings.IndexByte("0123456789.-", s[end]) >= 0 {
		end++
	}
	n, _ := strconv.ParseFloat(s[:end], 64)
	return n
}

func toolUniq(t *run) int {
	opts, rest := t.flags("")
	lines, code := t.lines(rest)
	for i := 0; i < len(lines); {
		j := i
		for j < len(lines) && lines[j] == lines[i] {
			j++
		}
		switch {
		case has(opts, "d") && j-i < 2, has(opts, "u") && j-i > 1:
		case has(opts, "c"):
			t.printf("%7d %s\n", j-i, lines[i])
		default:
			t.printf("%s\n", lines[i])
		}
		i = j
	}
	return code
}
