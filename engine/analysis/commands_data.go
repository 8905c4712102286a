package analysis

import (
	"strings"
)

func sqlite(c *call) {
	var ops []arg
	readOnly := false
	valued := set1("-separator -newline -nullvalue -mmap -maxsize -vfs -heap -pagecache -lookaside -key -hexkey -textkey")
	var commands []arg
	for i := 0; i < len(c.args); i++ {
		t := c.args[i].text
		switch {
		case t == "-cmd" || t == "--cmd":
			if i++; i < len(c.args) {
				commands = append(commands, c.args[i])
			}
		case t == "-init" || t == "--init":
			i++
		case valued[t] || valued[strings.TrimPrefix(t, "-")]:
			i++
		case t == "-readonly" || t == "--readonly":
			readOnly = true
		case strings.HasPrefix(t, "-") && len(ops) == 0:
		default:
			ops = append(ops, c.args[i])
		}
	}
	target := ":memory:"
	if len(ops) > 0 && ops[0].text != "" {
		target = databaseFile(c.env.cwd, ops[0].text)
		readOnly = readOnly || strings.Contains(ops[0].text, "mode=ro") || strings.Contains(ops[0].text, "immutable=1")
		commands = append(commands, ops[1:]...)
	}
	db := database{target, c.name}
	before := len(c.effects)
	for _, cmd := range commands {
		c.sqliteText(cmd.code, db)
	}
	if len(ops) < 2 && c.stdin != nil {
		if c.stdin.text == unknown {
			c.add(DataChanged, target) // a script that nobody sees is fed to a database to change it
		}
		c.sqliteText(*c.stdin, db)
	}
	if readOnly {
		for i := before; i < len(c.effects); i++ {
			if c.effects[i].Sort == DataChanged {
				c.effects[i].Undone = true
			}
		}
	}
}

// databaseFile is the path in a database's name, which may be a URI.
func databaseFile(cwd, name string) string {
	if uri, ok := strings.CutPrefix(name, "file:"); ok {
		name, _, _ = strings.Cut(uri, "?")
		name = strings.TrimPrefix(name, "//")
	}
	if name == ":memory:" || name == "" {
		return ":memory:"
	}
	return join(cwd, name)
}

// sqliteText is SQL with dot commands, which stand on lines of their own.
func (c *call) sqliteText(t code, db database) {
	start := 0
	flush := func(end int) {
		if strings.TrimSpace(t.text[start:end]) != "" {
			c.reading.sql(t.slice(start, end), db)
		}
	}
	for i := 0; i < len(t.text); {
		end := len(t.text)
		if j := strings.IndexByte(t.text[i:], '\n'); j >= 0 {
			end = i + j + 1
		}
		line := strings.TrimSpace(t.text[i:end])
		if strings.HasPrefix(line, ".") {
			flush(i)
			c.dot(strings.Fields(line), t.span(i, end), db)
			start = end
		}
		i = end
	}
	flush(len(t.text))
}

func (c *call) dot(words []string, at Span, db database) {
	file := ""
	if len(words) > 1 {
		file = join(c.env.cwd, strings.Trim(words[len(words)-1], `'"`))
	}
	switch words[0] {
	case ".backup", ".save", ".output", ".once", ".clone", ".log":
		if file != "" && !strings.HasSuffix(file, "/stdout") {
			c.note(FileWritten, file, c.name+" "+words[0], at)
		}
	case ".restore", ".import", ".read":
		c.note(DataChanged, db.target, c.name+" "+words[0], at)
	case ".shell", ".system":
		c.note(ProgramRun, "", c.name+" "+words[0], at)
	case ".dump":
		c.note(DataRead, db.target, c.name+" "+words[0], at)
	default:
		c.note(DataDescribed, db.target, c.name+" "+clip(words[0], 20), at)
	}
}

func psql(c *call) {
	valued := "cdfhpUvFRoPTL"
	if c.name != "psql" {
		valued = "ehPuDS"
	}
	db := database{"", c.name}
	run := func(t code) {
		if strings.HasPrefix(strings.TrimSpace(t.text), `\`) {
			c.note(DataDescribed, "", c.name, t.span(0, len(t.text)))
			return
		}
		c.reading.sql(t, db)
	}
	given := false
	for i := 0; i < len(c.args); i++ {
		t := c.args[i].text
		name, value, has := strings.Cut(t, "=")
		switch {
		case t == "-c" || t == "--command" || t == "-e" || t == "--execute" ||
			len(t) > 2 && t[0] == '-' && t[1] != '-' && strings.HasSuffix(t, "c") && c.name == "psql":
			if i++; i < len(c.args) {
				given = true
				run(c.args[i].code)
			}
		case has && (name == "--command" || name == "--execute"):
			given = true
			run(c.args[i].code.slice(len(t)-len(value), len(t)))
		case t == "-f" || t == "--file":
			if i++; i < len(c.args) {
				given = true
				c.sqlFile(c.args[i], db)
			}
		case t == "-l" || t == "--list":
			given = true
			c.add(DataDescribed, "")
		case len(t) == 2 && t[0] == '-' && strings.IndexByte(valued, t[1]) >= 0:
			i++
		}
	}
	if !given && c.stdin != nil {
		if c.stdin.text == unknown {
			c.add(DataChanged, "")
			return
		}
		run(*c.stdin)
	}
}

func (c *call) sqlFile(file arg, db database) {
	if text, ok := c.shell.script(c.resolve(file.text)); ok {
		c.reading.sql(code{text: text, fixed: &c.at, via: c.resolve(file.text)}, db)
		return
	}
	if file.text != "-" {
		c.add(DataChanged, db.target)
	}
}

func pgCluster(c *call) {
	ops, _ := getopt(c.args, "")
	if len(ops) < 3 {
		return
	}
	verb := ops[2].text
	c.sub = clip(verb, 20)
	switch verb {
	case "promote":
		c.add(ServiceCommand, "postgresql")
	default:
		if sort, ok := unitVerbs[verb]; ok {
			c.add(sort, unitName("postgresql@"+ops[0].text+"-"+ops[1].text))
		}
	}
}

// redisReads are the commands that look; redisServer those that tell the server
// to act; all others write.
var (
	redisReads = set1(`GET MGET STRLEN EXISTS TTL PTTL TYPE KEYS SCAN HGET HGETALL HKEYS HLEN HMGET LRANGE LLEN LINDEX SMEMBERS SCARD
		SISMEMBER ZRANGE ZCARD ZSCORE XRANGE XLEN XINFO DBSIZE PING INFO ROLE TIME ECHO MONITOR SUBSCRIBE GETRANGE OBJECT MEMORY LATENCY COMMAND LASTSAVE WAIT`)
	redisServer = map[string]Sort{"SHUTDOWN": UnitStopped, "BGSAVE": ServiceCommand, "SAVE": ServiceCommand, "BGREWRITEAOF": ServiceCommand,
		"FAILOVER": ServiceCommand, "REPLICAOF": ServiceCommand, "SLAVEOF": ServiceCommand, "CLUSTER": ServiceCommand, "SENTINEL": ServiceCommand,
		"CONFIG": ServiceCommand, "CLIENT": ServiceCommand, "DEBUG": ServiceCommand, "ACL": ServiceCommand, "RESET": ServiceCommand}
)

func redis(c *call) {
	ops, _ := getopt(c.args, "hpasnrixud", "user", "pass", "url")
	if len(ops) == 0 {
		if c.stdin != nil {
			if f := strings.Fields(c.stdin.text); len(f) > 0 {
				c.redisCommand(f)
			}
		}
		return
	}
	c.redisCommand(texts0(ops))
}

func (c *call) redisCommand(words []string) {
	verb := strings.ToUpper(words[0])
	c.sub = clip(verb, 20)
	second := ""
	if len(words) > 1 {
		second = strings.ToUpper(words[1])
	}
	switch {
	case redisReads[verb]:
		c.add(DataRead, "")
	case redisServer[verb] != "":
		if second == "GET" || second == "LIST" || second == "INFO" || second == "NODES" || second == "SLOTS" || second == "MASTERS" || second == "REPLICAS" {
			c.add(DataDescribed, "")
			return
		}
		c.add(redisServer[verb], "")
	default:
		c.add(DataChanged, "")
	}
}
