package sim

import (
	"encoding/base64"
	"encoding/hex"
	"io"
	"path"
	"slices"
	"strconv"
	"strings"
)

func toolCat(t *run) int {
	opts, rest := t.flags("")
	n := 0
	return t.inputs(rest, func(_ string, r io.Reader) {
		if !has(opts, "n") {
			_, _ = io.Copy(t.out, r)
			return
		}
		for sc := newScanner(r); sc.Scan(); {
			n++
			t.printf("%6d\t%s\n", n, sc.Text())
		}
	})
}

func toolTac(t *run) int {
	lines, code := t.lines(t.args)
	for _, l := range slices.Backward(lines) {
		t.printf("%s\n", l)
	}
	return code
}

func toolYes(t *run) int {
	word := "y"
	if len(t.args) > 0 {
		word = strings.Join(t.args, " ")
	}
	for t.ctx.Err() == nil {
		t.printf("%s\n", word)
	}
	return 0
}

func toolTee(t *run) int {
	opts, rest := t.flags("")
	code := 0
	outs := []io.Writer{t.out}
	for _, a := range rest {
		var err error
		if !has(opts, "a") {
			err = t.b.fs.WriteFile(t.Path(a), nil, 0o644)
		}
		if err != nil {
			code = t.fail(1, "%s: %s", a, errText(err))
			continue
		}
		outs = append(outs, appender{t, t.Path(a)})
	}
	_, _ = io.Copy(io.MultiWriter(outs...), t.in)
	return code
}

type appender struct {
	t  *run
	at string
}

func (a appender) Write(p []byte) (int, error) {
	return len(p), a.t.b.fs.Append(a.at, p, 0o644)
}

// oldCount turns "-5" into "-n 5", as head and tail take it.
func oldCount(args []string) []string {
	if len(args) > 0 && len(args[0]) > 1 && args[0][0] == '-' && args[0][1] >= '0' && args[0][1] <= '9' {
		return append([]string{"-n", args[0][1:]}, args[1:]...)
	}
	return args
}

func toolHead(t *run) int {
	t.args = oldCount(t.args)
	opts, rest := t.flags("nc--lines --bytes ")
	if c, ok := opts["c"]; ok {
		n, _ := size(c)
		return t.inputs(rest, func(_ string, r io.Reader) { _, _ = io.CopyN(t.out, r, n) })
	}
	n := 10
	if c, ok := opts["n"]; ok {
		n, _ = strconv.Atoi(c)
	}
	return t.inputs(rest, func(_ string, r io.Reader) {
		if n < 0 {
			var all []string
			for sc := newScanner(r); sc.Scan(); {
				all = append(all, sc.Text())
			}
			for _, l := range all[:max(0, len(all)+n)] {
				t.printf("%s\n", l)
			}
			return
		}
		sc := newScanner(r)
		for i := 0; i < n && sc.Scan(); i++ {
			t.printf("%s\n", sc.Text())
		}
	})
}

func size(s string) (int64, bool) {
	unit := int64(1)
	for suffix, u := range map[string]int64{"K": 1 << 10, "k": 1 << 10, "M": 1 << 20, "G": 1 << 30} {
		if v, ok := strings.CutSuffix(s, suffix); ok {
			s, unit = v, u
		}
	}
	n, err := strconv.ParseInt(s, 10, 64)
	return n * unit, err == nil && n >= 0
}

func toolTail(t *run) int {
	t.args = oldCount(t.args)
	opts, rest := t.flags("nc--lines --bytes ")
	if c, ok := opts["c"]; ok {
		n, _ := size(strings.TrimPrefix(c, "+"))
		return t.inputs(rest, func(_ string, r io.Reader) {
			data, _ := io.ReadAll(io.LimitReader(r, 64<<20))
			_, _ = t.out.Write(data[max(0, int64(len(data))-n):])
		})
	}
	count := "10"
	if c, ok := opts["n"]; ok {
		count = c
	}
	from, fromStart := strings.CutPrefix(count, "+")
	n, _ := strconv.Atoi(from)
	return t.inputs(rest, func(_ string, r io.Reader) {
		var all []string
		for sc := newScanner(r); sc.Scan(); {
			all = append(all, sc.Text())
		}
		start := max(0, len(all)-max(n, -n))
		if fromStart {
			start = min(len(all), max(0, n-1))
		}
		for _, l := range all[start:] {
			t.printf("%s\n", l)
		}
	})
}

func toolWc(t *run) int {
	opts, rest := t.flags("")
	all := !has(opts, "l", "w", "c", "m")
	return t.inputs(rest, func(name string, r io.Reader) {
		data, _ := io.ReadAll(io.LimitReader(r, 256<<20))
		var f []string
		if all || has(opts, "l") {
			f = append(f, strconv.Itoa(strings.Count(string(data), "\n")))
		}
		if all || has(opts, "w") {
			f = append(f, strconv.Itoa(len(strings.Fields(string(data)))))
		}
		if all || has(opts, "c", "m") {
			f = append(f, strconv.Itoa(len(data)))
		}
		if name != "-" {
			f = append(f, name)
		}
		t.printf("%s\n", strings.Join(f, " "))
	})
}

func toolSeq(t *run) int {
	var nums []int
	for _, a := range t.args {
		n, err := strconv.Atoi(a)
		if err != nil {
			return t.fail(1, "invalid argument '%s'", a)
		}
		nums = append(nums, n)
	}
	from, step, to := 1, 1, 0
	switch len(nums) {
	case 1:
		to = nums[0]
	case 2:
		from, to = nums[0], nums[1]
	case 3:
		from, step, to = nums[0], nums[1], nums[2]
	default:
		return t.fail(1, "missing operand")
	}
	if step == 0 {
		return t.fail(1, "step is zero")
	}
	for n := from; (step > 0 && n <= to || step < 0 && n >= to) && t.ctx.Err() == nil; n += step {
		t.printf("%d\n", n)
	}
	return 0
}

func toolBasename(t *run) int {
	if len(t.args) == 0 {
		return t.fail(1, "missing operand")
	}
	base := path.Base(t.args[0])
	if len(t.args) > 1 && base != t.args[1] {
		base = strings.TrimSuffix(base, t.args[1])
	}
	t.printf("%s\n", base)
	return 0
}

func toolDirname(t *run) int {
	for _, a := range t.args {
		t.printf("%s\n", path.Dir(strings.TrimRight(a, "/")))
	}
	return 0
}

func toolBase64(t *run) int {
	opts, rest := t.flags("w")
	name := "-"
	if len(rest) > 0 {
		name = rest[0]
	}
	data, err := t.readInput(name)
	if err != nil {
		return t.fail(1, "%s", errText(err))
	}
	if has(opts, "d", "decode") {
		clean := strings.Join(strings.Fields(string(data)), "")
		out, err := base64.StdEncoding.DecodeString(clean)
		if err != nil {
			return t.fail(1, "invalid input")
		}
		_, _ = t.out.Write(out)
		return 0
	}
	t.printf("%s\n", base64.StdEncoding.EncodeToString(data))
	return 0
}

// toolOd prints bytes in hexadecimal, which is all that scripts here ask of od.
func toolOd(t *run) int {
	opts, rest := t.flags("AtNjw")
	limit := int64(1 << 20)
	if n, ok := opts["N"]; ok {
		limit, _ = size(n)
	}
	return t.inputs(rest, func(_ string, r io.Reader) {
		data, _ := io.ReadAll(io.LimitReader(r, limit))
		for len(data) > 0 {
			row := data[:min(16, len(data))]
			data = data[len(row):]
			for _, c := range row {
				t.printf(" %s", hex.EncodeToString([]byte{c}))
			}
			t.printf("\n")
		}
	})
}

// toolExpr does integer arithmetic and comparison of two operands.
func toolExpr(t *run) int {
	if len(t.args) != 3 {
		return t.fail(2, "only two operands are supported")
	}
	a, aerr := strconv.Atoi(t.args[0])
	b, berr := strconv.Atoi(t.args[2])
	if aerr != nil || berr != nil {
		return t.fail(2, "non-integer argument")
	}
	n := 0
	truth := func(ok bool) {
		if ok {
			n = 1
		}
	}
	switch t.args[1] {
	case "+":
		n = a + b
	case "-":
		n = a - b
	case "*":
		n = a * b
	case "/", "%":
		if b == 0 {
			return t.fail(2, "division by zero")
		}
		if n = a / b; t.args[1] == "%" {
			n = a % b
		}
	case "=":
		truth(a == b)
	case "<":
		truth(a < b)
	case ">":
		truth(a > b)
	default:
		return t.fail(2, "syntax error")
	}
	t.printf("%d\n", n)
	if n == 0 {
		return 1
	}
	return 0
}
