package analysis

import (
	"path"
	"strings"
)

// pyFileCalls are library functions by what they do to the path in their n-th
// argument (counted from 0).
var pyFileCalls = map[string]struct {
	sort Sort
	n    int
}{
	"os.remove": {FileRemoved, 0}, "os.unlink": {FileRemoved, 0}, "os.rmdir": {FileRemoved, 0}, "os.removedirs": {FileRemoved, 0},
	"shutil.rmtree": {FileRemoved, 0}, "os.mkdir": {DirectoryCreated, 0}, "os.makedirs": {DirectoryCreated, 0},
	"os.chmod": {AttributesChanged, 0}, "os.chown": {AttributesChanged, 0}, "os.lchown": {AttributesChanged, 0}, "shutil.chown": {AttributesChanged, 0},
	"os.utime": {AttributesChanged, 0}, "shutil.copymode": {AttributesChanged, 1}, "shutil.copystat": {AttributesChanged, 1},
	"os.truncate": {FileWritten, 0}, "os.mkfifo": {FileWritten, 0}, "os.mknod": {FileWritten, 0}, "os.symlink": {FileWritten, 1}, "os.link": {FileWritten, 1},
	"shutil.copy": {FileWritten, 1}, "shutil.copy2": {FileWritten, 1}, "shutil.copyfile": {FileWritten, 1}, "shutil.copytree": {FileWritten, 1},
	"os.setxattr": {AttributesChanged, 0}, "urllib.request.urlretrieve": {FileWritten, 1},
}

// pyPathMethods are the methods of a Path that change something. The ones that
// are common() exist on other objects, too, and count only on a known Path.
var pyPathMethods = map[string]Sort{
	"write_text": FileWritten, "write_bytes": FileWritten, "symlink_to": FileWritten, "hardlink_to": FileWritten, "unlink": FileRemoved,
	"touch": FileWritten, "mkdir": DirectoryCreated, "rmdir": FileRemoved, "chmod": AttributesChanged, "lchmod": AttributesChanged,
}

var pyCommonMethods = set1("touch mkdir rmdir chmod lchmod unlink")

var httpMethods = map[string]bool{"get": false, "head": false, "options": false, "post": true, "put": true, "patch": true, "delete": true}

// callValue is a call's result; what the call does is noted.
func (p *pyProgram) callValue(f pyValue, args []pyValue, named map[string]pyValue, at Span) pyValue {
	if !p.spend() {
		return anything()
	}
	arg := func(n int, names ...string) pyValue {
		for _, k := range names {
			if v, ok := named[k]; ok {
				return v
			}
		}
		if n >= 0 && n < len(args) {
			return args[n]
		}
		return pyValue{}
	}
	if name, ok := strings.CutPrefix(f.name, "\x00def."); ok {
		if fn := p.funcs[name]; fn != nil {
			return p.invoke(fn, args, named)
		}
	}
	if f.recv != nil {
		if fn := p.funcs[f.method]; fn != nil && (f.name == "" || strings.HasPrefix(f.name, "self.")) {
			return p.invoke(fn, args, named)
		}
		if v, ok := p.methodCall(f, args, named, arg, at); ok {
			return v
		}
	}
	name := strings.TrimPrefix(f.name, "builtins.")
	if c, ok := pyFileCalls[name]; ok {
		p.pyNote(c.sort, arg(c.n, "path", "dst").asText(), name, at)
		if c.sort == FileWritten && strings.HasPrefix(name, "shutil.copy") {
			p.moved(p.pyPath(arg(0).asText()), p.pyPath(arg(1).asText()))
		}
		return anything()
	}
	if m, ok := httpMethods[name[strings.LastIndexByte(name, '.')+1:]]; ok &&
		(strings.HasPrefix(name, "requests.") || strings.HasPrefix(name, "httpx.")) {
		p.pyRequest(m, arg(0, "url").text, name, at)
		return anything()
	}
	switch name {
	case "open", "io.open", "codecs.open", "gzip.open", "bz2.open", "lzma.open", "zipfile.ZipFile", "tarfile.open":
		file := arg(0, "file", "filename").asText()
		if arg(0, "file").is == pyFile { // of a descriptor: noted when it was made
			return arg(0, "file")
		}
		if strings.ContainsAny(arg(1, "mode").text, "wax+") {
			p.pyNote(FileWritten, file, name, at)
			if !strings.Contains(arg(1, "mode").text, "a") {
				p.wrote(p.pyPath(file), "", false)
			}
		}
		return pyValue{code: code{text: unknown}, is: pyFile, path: p.pyPath(file)}
	case "os.open":
		file := p.pyPath(arg(0, "path").asText())
		flags := arg(1, "flags")
		if flags.to > flags.from && flags.to <= len(p.src.text) {
			text := p.src.text[flags.from:flags.to]
			for _, w := range []string{"O_WRONLY", "O_RDWR", "O_CREAT", "O_TRUNC", "O_APPEND"} {
				if strings.Contains(text, w) {
					p.pyNote(FileWritten, file, name, at)
					break
				}
			}
		}
		return pyValue{code: code{text: unknown}, is: pyFile, path: file}
	case "os.fdopen":
		return arg(0)
	case "os.replace", "os.rename", "os.renames", "shutil.move":
		from, to := arg(0, "src").asText(), arg(1, "dst").asText()
		p.pyNote(FileWritten, to, name, at)
		p.pyNote(FileRemoved, from, name, at)
		p.moved(p.pyPath(from), p.pyPath(to))
		return anything()
	case "tempfile.mkstemp", "tempfile.mkdtemp", "tempfile.NamedTemporaryFile", "tempfile.TemporaryFile", "tempfile.TemporaryDirectory":
		dir := "/tmp"
		if d := arg(-1, "dir"); d.asText() != "" {
			dir = p.pyPath(d.asText())
		} else if name == "tempfile.mkstemp" && len(args) > 2 {
			dir = p.pyPath(args[2].asText())
		}
		made := dir + "/" + temporary
		p.pyNote(FileWritten, made, name, at)
		switch name {
		case "tempfile.mkstemp":
			return pyValue{code: code{text: unknown}, is: pyList, list: []pyValue{
				{code: code{text: unknown}, is: pyFile, path: made}, {code: code{text: made}}}}
		case "tempfile.mkdtemp":
			return pyValue{code: code{text: made}}
		case "tempfile.TemporaryDirectory":
			return pyValue{code: code{text: made}}
		}
		return pyValue{code: code{text: unknown}, is: pyTemp, path: made}
	case "os.chdir":
		p.cwd = p.pyPath(arg(0).asText())
	case "os.getcwd":
		return pyValue{code: code{text: p.cwd}}
	case "os.path.join":
		out := ""
		for _, a := range args {
			out = pyJoin(out, a.asText())
		}
		return pyValue{code: code{text: out}}
	case "os.path.dirname":
		if t := arg(0).asText(); !strings.HasPrefix(t, unknown) {
			return pyValue{code: code{text: path.Dir(t)}}
		}
	case "os.path.basename":
		return pyValue{code: code{text: path.Base(arg(0).asText())}}
	case "os.path.abspath", "os.path.realpath", "os.path.normpath", "os.fspath", "str", "os.fsdecode", "os.fsencode":
		return pyValue{code: code{text: arg(0).asText()}}
	case "os.path.expanduser":
		return pyValue{code: code{text: strings.Replace(arg(0).asText(), "~", "/root", 1)}}
	case "tempfile.gettempdir":
		return pyValue{code: code{text: "/tmp"}}
	case "pathlib.Path", "pathlib.PosixPath":
		out := ""
		for _, a := range args {
			out = pyJoin(out, a.asText())
		}
		return pyValue{code: code{text: unknown}, is: pyPath, path: out}
	case "list", "tuple", "sorted", "set", "reversed":
		return arg(0)
	case "os.system", "os.popen", "subprocess.getoutput", "subprocess.getstatusoutput", "asyncio.create_subprocess_shell":
		p.runCommand(arg(0), nil, false)
	case "subprocess.run", "subprocess.call", "subprocess.check_call", "subprocess.check_output", "subprocess.Popen":
		in := arg(-1, "input")
		p.runCommand(arg(0, "args"), &in, name == "subprocess.Popen")
	case "os.execv", "os.execvp", "os.execve", "os.execvpe", "os.posix_spawn":
		p.runCommand(arg(1), nil, false)
	case "os.execl", "os.execlp", "asyncio.create_subprocess_exec":
		p.runCommand(pyValue{is: pyList, list: args}, nil, false)
	case "os.kill", "os.killpg":
		if arg(1).text != "0" {
			p.pyNote2(ProcessKilled, arg(0).text, name, at)
		}
	case "os.sync", "os.fsync":
	case "os.sethostname":
		p.pyNote2(SystemConfigured, "", name, at)
	case "sqlite3.connect":
		file := arg(0, "database").asText()
		v := pyValue{code: code{text: unknown}, is: pyDatabase, path: databaseFile(p.cwd, file)}
		if strings.Contains(file, "mode=ro") || strings.Contains(file, "immutable=1") {
			v.method = "ro"
		}
		return v
	case "psycopg2.connect", "psycopg.connect", "pymysql.connect", "MySQLdb.connect", "mysql.connector.connect", "pg8000.connect":
		return pyValue{code: code{text: unknown}, is: pyDatabase}
	case "http.client.HTTPConnection", "http.client.HTTPSConnection", "requests.Session", "httpx.Client", "requests.session":
		host := arg(0, "host").text
		if port := arg(1, "port").text; port != "" {
			host += ":" + port
		}
		return pyValue{code: code{text: unknown}, is: pyHTTP, path: host}
	case "urllib.request.Request":
		_, data := named["data"]
		data = (data || len(args) > 1) && arg(1, "data").name != "None"
		method := strings.ToUpper(arg(-1, "method").text)
		p.pyRequest(data || method != "" && method != unknown && method != "GET" && method != "HEAD", arg(0, "url").text, name, at)
		return pyValue{code: code{text: unknown}, is: pyRequest}
	case "urllib.request.urlopen":
		if arg(0, "url").is != pyRequest {
			_, data := named["data"]
			p.pyRequest((data || len(args) > 1) && arg(1, "data").name != "None", arg(0, "url").text, name, at)
		}
	case "requests.request", "httpx.request":
		p.pyRequest(httpMethods[strings.ToLower(arg(0, "method").text)], arg(1, "url").text, name, at)
	case "socket.create_connection":
		p.pyNote2(PortProbed, pyAddress(arg(0)), name, at)
	case "redis.Redis", "redis.StrictRedis", "redis.from_url":
		return pyValue{code: code{text: unknown}, name: "redis.client"}
	case "exec", "eval", "compile":
		if t := arg(0); t.text != unknown && t.text != "" && t.is == "" {
			p.python(t.code, nil)
		}
	case "sys.exit", "exit", "quit":
		if t := arg(0).text; len(args) > 0 && t != "0" {
			p.pyNote2(Asserted, "", name, at)
		}
	case "unittest.main":
		p.pyNote2(TestRun, "", name, at)
	case "runpy.run_path":
		if text, ok := p.shell.script(p.pyPath(arg(0).asText())); ok {
			p.python(code{text: text, fixed: &at, via: p.pyPath(arg(0).asText())}, nil)
		}
	case "range", "enumerate", "zip":
	}
	return anything()
}

// methodCall judges a call on an object.
func (p *pyProgram) methodCall(f pyValue, args []pyValue, named map[string]pyValue, arg func(int, ...string) pyValue, at Span) (pyValue, bool) {
	recv := *f.recv
	if recv.is == pyPath || recv.name == "" && !pyCommonMethods[f.method] {
		if sort, ok := pyPathMethods[f.method]; ok {
			target := recv.path
			if recv.is != pyPath {
				target = unknown
			}
			p.pyNote(sort, target, "Path."+f.method, at)
			if f.method == "write_text" && recv.is == pyPath {
				p.wrote(p.pyPath(target), arg(0, "data").text, false)
			}
			return anything(), true
		}
	}
	switch recv.is {
	case pyPath:
		switch f.method {
		case "rename", "replace":
			to := arg(0, "target").asText()
			p.pyNote(FileWritten, to, "Path."+f.method, at)
			p.pyNote(FileRemoved, recv.path, "Path."+f.method, at)
			p.moved(p.pyPath(recv.path), p.pyPath(to))
			return anything(), true
		case "open":
			if strings.ContainsAny(arg(0, "mode").text, "wax+") {
				p.pyNote(FileWritten, recv.path, "Path.open", at)
			}
			return pyValue{code: code{text: unknown}, is: pyFile, path: p.pyPath(recv.path)}, true
		case "joinpath":
			for _, a := range args {
				recv.path = pyJoin(recv.path, a.asText())
			}
			return recv, true
		case "resolve", "absolute", "expanduser":
			return recv, true
		case "with_name":
			recv.path = pyJoin(path.Dir(recv.path), arg(0).text)
			return recv, true
		case "with_suffix":
			recv.path = strings.TrimSuffix(recv.path, path.Ext(recv.path)) + arg(0).text
			return recv, true
		}
		return anything(), true
	case pyFile:
		if f.method == "write" && !strings.Contains(recv.path, unknown) {
			p.wrote(recv.path, arg(0).text, true)
		}
		return recv, true
	case pyHTTP:
		if f.method == "request" {
			method := strings.ToLower(arg(0, "method").text)
			writes, known := httpMethods[method]
			p.pyRequest(writes || !known && method != unknown, recv.path+arg(1, "url").text, "http."+f.method, at)
		} else if writes, ok := httpMethods[f.method]; ok {
			p.pyRequest(writes, arg(0, "url").text, "http."+f.method, at)
		}
		return anything(), true
	}
	switch f.method {
	case "execute", "executemany", "executescript":
		if recv.is == pyDatabase || recv.name == "" || recv.recv != nil {
			p.pySQL(recv, arg(0, "sql"))
			return recv, true
		}
	case "cursor", "commit", "close", "__enter__", "fetchall", "fetchone":
		if recv.is == pyDatabase {
			return recv, true
		}
	case "rollback":
		for i := range p.effects {
			if e := &p.effects[i]; e.Sort == DataChanged && (recv.is != pyDatabase || e.target == recv.path) {
				e.Undone = true
			}
		}
		return anything(), true
	case "backup":
		if t := arg(0, "target"); recv.is == pyDatabase && t.is == pyDatabase {
			p.pyNote2(DataChanged, t.path, "backup", at)
			return anything(), true
		}
	case "request":
		if writes, ok := httpMethods[strings.ToLower(arg(0).text)]; ok && recv.name == "" {
			p.pyRequest(writes, arg(1).text, "http.request", at)
			return anything(), true
		}
	case "connect", "connect_ex":
		if a := arg(0); a.is == pyList && len(a.list) == 2 {
			p.pyNote2(PortProbed, pyAddress(a), "socket."+f.method, at)
			return anything(), true
		}
	case "encode", "decode", "strip", "rstrip", "lstrip":
		if recv.is == "" && recv.name == "" {
			return recv, true
		}
	case "items", "values", "keys":
		return anything(), true
	case "format":
		if recv.is == "" && recv.name == "" {
			return pyValue{code: braces(recv.code, args)}, true
		}
	case "terminate", "kill", "send_signal": // of a process that the program itself began
		if recv.name == "" {
			p.pyNote2(ProcessKilled, background, f.method, at)
			return anything(), true
		}
	}
	return anything(), f.name == ""
}

// braces fills {} with what is known.
func braces(f code, args []pyValue) code {
	w := writer{src: f}
	for i := 0; i < len(f.text); i++ {
		if f.text[i] != '{' {
			w.byte(f.text[i], i)
			continue
		}
		end := strings.IndexByte(f.text[i:], '}')
		if end < 0 {
			break
		}
		text := unknown
		if end == 1 && len(args) > 0 {
			text = args[0].asText()
			args = args[1:]
		}
		w.text(text, i)
		i += end
	}
	return w.code()
}

func (p *pyProgram) pySQL(db pyValue, sql pyValue) {
	target := db.path
	if db.is != pyDatabase {
		target = unknown
	}
	before := len(p.effects)
	p.reading.sql(sql.code, database{target, "python execute"})
	if db.method == "ro" {
		for i := before; i < len(p.effects); i++ {
			p.effects[i].Undone = true // refused by the connection
		}
	}
}

func pyAddress(v pyValue) string {
	if len(v.list) == 2 {
		return v.list[0].text + ":" + v.list[1].text
	}
	return v.text
}

func (p *pyProgram) pyPath(s string) string { return join(p.cwd, s) }

func (p *pyProgram) pyNote(sort Sort, target, by string, at Span) {
	if target == "" {
		target = unknown
	}
	p.reading.note(sort, p.pyPath(target), "python "+by, at, p.src.via)
}

func (p *pyProgram) pyNote2(sort Sort, target, by string, at Span) {
	p.reading.note(sort, target, "python "+by, at, p.src.via)
}

func (p *pyProgram) pyRequest(writes bool, url, by string, at Span) {
	sort := HTTPRequest
	if writes {
		sort = HTTPWrite
	}
	p.pyNote2(sort, url, by, at)
}

// runCommand follows a command that a program starts: a list is its words, a
// text is for the shell.
func (p *pyProgram) runCommand(v pyValue, input *pyValue, background bool) {
	s := *p.shell
	s.src = p.src
	s.stdin = nil
	if input != nil && input.text != "" {
		s.stdin = &input.code
	}
	env := newScope()
	env.cwd = p.cwd
	s.env = env
	if v.is != pyList {
		if v.text != unknown && v.text != "" {
			s.run(v.code, env, s.stdin)
		}
		return
	}
	var words []arg
	for _, x := range v.list {
		c := x.code
		if x.is == pyPath {
			c = code{text: x.path}
		}
		if c.text == "" {
			c.text = unknown
		}
		words = append(words, arg{c, x.from, max(x.to, x.from+1)})
	}
	_ = background
	s.command(words, false)
}
