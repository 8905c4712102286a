package analysis

import (
	"encoding/json"
	"slices"
	"testing"

	"refbox/engine/transcript"
)

// want is what a command must be and must show; effects as "sort target".
type want struct {
	name    string
	command string
	before  bool // something was changed before
	kind    Kind
	effects []string // must be there and count as changes
	not     []string // must not be there at all
}

func check(t *testing.T, w want) {
	t.Helper()
	j := Classify(Action{Tool: "bash", Command: w.command, Success: true}, w.before)
	var changes, all []string
	for _, e := range j.Effects {
		s := string(e.Sort) + " " + e.Target
		all = append(all, s)
		if e.Changes() || e.Sort.Kind() != Mutation && e.Sort.Kind() != Lifecycle {
			changes = append(changes, s)
		}
	}
	if j.Kind != w.kind {
		t.Errorf("%q is %s, should be %s; effects %q", w.command, j.Kind, w.kind, all)
	}
	for _, e := range w.effects {
		if !slices.Contains(changes, e) {
			t.Errorf("%q lacks %q; effects %q", w.command, e, all)
		}
	}
	for _, e := range w.not {
		if slices.Contains(all, e) {
			t.Errorf("%q must not show %q", w.command, e)
		}
	}
}

func TestCommands(t *testing.T) {
	for _, w := range []want{
		// Words that fool a search for words.
		{name: "which", command: "which reboot shutdown sqlite3; type systemctl", kind: Discovery},
		{name: "null", command: "ls /opt >/dev/null 2>/dev/null 2>&1", kind: Discovery, not: []string{"file_written /dev/null"}},
		{name: "cat unit", command: "systemctl cat failover-proxy; systemctl --version", before: true, kind: Discovery},
		{name: "echo", command: `echo "systemctl restart x; rm -rf /etc > /opt/x"`, kind: Discovery},
		{name: "comment", command: "# rm -rf /opt/x\nls", kind: Discovery},
		{name: "grep pattern", command: `grep -rn "systemctl reboot\|sqlite3 " /etc --include=*.service`, kind: Discovery},
		{name: "help", command: "reboot --help; systemctl restart --help", kind: Discovery},
		{name: "dry run", command: "rsync -n -a /etc/ /opt/x/; apt-get -s install nginx; systemctl --dry-run reboot", kind: Discovery},
		{name: "file name", command: "ls -la /opt/rm /usr/bin/reboot /var/lib/x/records.sqlite3 ", kind: Discovery},
		{name: "quoted arrow", command: `awk '$1 > 5' /var/log/x; test 5 \> 3`, kind: Discovery},

		// Files.
		{name: "redirect", command: "cat > /etc/app.conf <<EOF\na\nEOF", kind: Mutation, effects: []string{"file_written /etc/app.conf"}},
		{name: "tee", command: "echo x | sudo tee -a /etc/hosts >/dev/null", kind: Mutation, effects: []string{"file_written /etc/hosts"}},
		{name: "sed -i", command: "sed -i.bak 's/a/b/' /etc/app.conf", kind: Mutation, effects: []string{"file_written /etc/app.conf"}},
		{name: "sed -Ei", command: "sed -Ei 's/a/b/' /etc/app.conf", kind: Mutation, effects: []string{"file_written /etc/app.conf"}},
		{name: "sed -n", command: "sed -n 1,20p /etc/app.conf; sed -e 's/-i/x/' /etc/app.conf", kind: Discovery},
		{name: "cp dir", command: "cp a.service /etc/systemd/system/", kind: Mutation, effects: []string{"file_written /etc/systemd/system/a.service"}},
		{name: "cp in known dir", command: "cp /tmp/a.service /etc/systemd/system", kind: Mutation, effects: []string{"file_written /etc/systemd/system/a.service"}},
		{name: "atomic", command: "printf 8082 > /var/lib/f/up.tmp && mv -f /var/lib/f/up.tmp /var/lib/f/up", kind: Mutation, effects: []string{"file_written /var/lib/f/up"}},
		{name: "cd", command: "cd /var/lib/f && echo 8082 > upstream", kind: Mutation, effects: []string{"file_written /var/lib/f/upstream"}},
		{name: "variable", command: "d=/opt/app; mkdir -p \"$d/data\"; touch ${d}/x", kind: Mutation, effects: []string{"directory_created /opt/app/data", "file_written /opt/app/x"}},
		{name: "braces", command: "mkdir -p /opt/{a,b}", kind: Mutation, effects: []string{"directory_created /opt/a", "directory_created /opt/b"}},
		{name: "install -d", command: "install -d -m 755 /opt/x", kind: Mutation, effects: []string{"directory_created /opt/x"}},
		{name: "dd", command: "dd if=/dev/zero of=/var/lib/f/disk bs=1M count=1", kind: Mutation, effects: []string{"file_written /var/lib/f/disk"}},
		{name: "find -delete", command: "find /var/lib/f -name '*.tmp' -delete", kind: Mutation},
		{name: "find -exec", command: "find /opt/x -type f -exec chmod 600 {} +", kind: Mutation},
		{name: "find reads", command: "find /etc -name '*.conf' -exec grep -l rm {} \\;", kind: Discovery},
		{name: "xargs rm", command: "ls /opt/x | xargs rm -f", kind: Mutation},
		{name: "tar list", command: "tar tzf a.tgz; tar -tf a.tar", kind: Discovery},
		{name: "tar extract", command: "tar -xzf a.tgz -C /opt/app", kind: Mutation},
		{name: "git reads", command: "git -C /opt/x status; git log; git diff", kind: Discovery},
		{name: "git writes", command: "git -C /opt/x checkout main", kind: Mutation, effects: []string{"file_written /opt/x"}},
		{name: "perl in place", command: "perl -pi -e 's/a/b/' /etc/x", kind: Mutation, effects: []string{"file_written /etc/x"}},
		{name: "node", command: `node -e 'require("fs").writeFileSync("/opt/x.js", "a")'`, kind: Mutation, effects: []string{"file_written /opt/x.js"}},

		// Scratch, and what is taken back.
		{name: "tmp", command: "echo x > /tmp/a; rm -rf /tmp/b /var/tmp/c", kind: Discovery},
		{name: "mktemp", command: `w=$(mktemp -d); trap 'rm -rf "$w"' EXIT; echo a > "$w/x"`, before: true, kind: Discovery},
		{name: "mktemp beside", command: `t=$(mktemp /etc/app.XXXX); echo a > "$t"; mv "$t" /etc/app.conf`, kind: Mutation, effects: []string{"file_written /etc/app.conf"}},
		{name: "probe", command: "touch /etc/.w && rm -f /etc/.w", kind: Discovery},
		{name: "not a probe", command: "rm -f /etc/.w && touch /etc/.w", kind: Mutation},
		{name: "two unknown names", command: `touch /etc/$a; rm /etc/$b`, kind: Mutation},
		{name: "own process", command: "sleep 100 & p=$!; kill $p", kind: Discovery},
		{name: "own server", command: "python3 /opt/app.py & pid=$!\ncurl -s localhost:8080; kill \"$pid\"", kind: Discovery},
		{name: "kept server", command: "nohup python3 /opt/app.py >/var/log/app.log 2>&1 &", kind: Mutation, effects: []string{"process_started /opt/app.py"}},
		{name: "scratch server", command: "python3 /tmp/a.py >/tmp/log 2>&1 &", kind: Discovery},
		{name: "own row", command: `id=probe-1; curl -X PUT -d x localhost:8080/records/$id; sqlite3 /var/lib/r.db "delete from records where id='$id'"`, before: true, kind: Validation},
		{name: "other row", command: `curl -X PUT -d x localhost:8080/records/probe-1; sqlite3 /var/lib/r.db "delete from records where id='customer'"`, before: true, kind: Mutation},

		// Lifecycle.
		{name: "restart", command: "systemctl restart a b.timer", kind: Lifecycle, effects: []string{"unit_restarted a.service", "unit_restarted b.timer"}},
		{name: "enable now", command: "systemctl --no-pager enable --now a", kind: Lifecycle, effects: []string{"unit_enabled a.service", "unit_started a.service"}},
		{name: "mask", command: "systemctl mask old-primary", kind: Lifecycle, effects: []string{"unit_masked old-primary.service"}},
		{name: "loop", command: "for u in a b; do systemctl stop $u; done", kind: Lifecycle, effects: []string{"unit_stopped a.service", "unit_stopped b.service"}},
		{name: "sudo", command: "sudo -u root -- systemctl start a", kind: Lifecycle, effects: []string{"unit_started a.service"}},
		{name: "timeout env", command: "timeout -k 5 10 env A=b nice -n 5 systemctl start a", kind: Lifecycle, effects: []string{"unit_started a.service"}},
		{name: "bash -c", command: `bash -lc 'systemctl start a && echo "x"'`, kind: Lifecycle, effects: []string{"unit_started a.service"}},
		{name: "nested", command: `ssh root@h "bash -c \"systemctl start a\""`, kind: Lifecycle, effects: []string{"unit_started a.service"}},
		{name: "eval", command: `c="systemctl start a"; eval "$c"`, kind: Lifecycle, effects: []string{"unit_started a.service"}},
		{name: "function", command: "go() { systemctl start \"$1\"; }\ngo a", kind: Lifecycle, effects: []string{"unit_started a.service"}},
		{name: "function not called", command: "go() { systemctl start a; }\nls", kind: Discovery},
		{name: "substitution", command: `echo "$(systemctl start a)"`, kind: Lifecycle, effects: []string{"unit_started a.service"}},
		{name: "kill", command: "pkill -f old-primary", kind: Lifecycle},
		{name: "kill -0", command: "kill -0 123; pgrep x", kind: Discovery},
		{name: "sysrq", command: "echo b > /proc/sysrq-trigger", kind: Lifecycle, effects: []string{"reboot /proc/sysrq-trigger"}},
		{name: "reboot", command: "(sleep 1; /run/current-system/sw/bin/reboot) &", kind: Lifecycle},
		{name: "iptables", command: "iptables -A INPUT -p tcp --dport 8081 -j DROP", kind: Lifecycle},
		{name: "iptables list", command: "iptables -L -n; nft list ruleset; ip addr show; ip route", kind: Discovery},
		{name: "sysctl", command: "sysctl -w net.ipv4.ip_forward=1", kind: Lifecycle},
		{name: "sysctl read", command: "sysctl net.ipv4.ip_forward; mount | grep x", kind: Discovery},
		{name: "write and restart", command: "echo a > /etc/x; systemctl restart a", kind: Mutation},
		{name: "control socket", command: "curl --unix-socket /run/docker.sock -X POST http://x/containers/a/restart", kind: Lifecycle},

		// SQL.
		{name: "select", command: `sqlite3 /var/lib/r.db "select 'insert into x; drop table y' from t"`, kind: Discovery},
		{name: "schema", command: `sqlite3 /var/lib/r.db .schema .tables`, before: true, kind: Discovery},
		{name: "insert", command: `sqlite3 /var/lib/r.db "insert into t values (1)"`, kind: Mutation, effects: []string{"data_changed /var/lib/r.db"}},
		{name: "heredoc sql", command: "sqlite3 /var/lib/r.db <<'SQL'\n-- update\nselect 1;\nupdate t set a=1;\nSQL", kind: Mutation, effects: []string{"data_changed /var/lib/r.db"}},
		{name: "piped sql", command: `echo "delete from t;" | sqlite3 /var/lib/r.db`, kind: Mutation, effects: []string{"data_changed /var/lib/r.db"}},
		{name: "rolled back", command: `sqlite3 /var/lib/r.db "begin immediate; insert into t values (1); rollback;"`, kind: Discovery},
		{name: "committed", command: `sqlite3 /var/lib/r.db "begin; insert into t values (1); commit;"`, kind: Mutation},
		{name: "memory", command: `sqlite3 :memory: "create table t(x)"`, kind: Discovery},
		{name: "pragma read", command: `sqlite3 /var/lib/r.db "pragma journal_mode; pragma busy_timeout=5000"`, kind: Discovery},
		{name: "pragma write", command: `sqlite3 /var/lib/r.db "pragma journal_mode=wal"`, kind: Mutation},
		{name: "with", command: `sqlite3 /var/lib/r.db "with a as (select 1) insert into t select * from a"`, kind: Mutation},
		{name: "read only", command: `sqlite3 -readonly /var/lib/r.db "insert into t values (1)"`, kind: Discovery},
		{name: "promote", command: `psql -U postgres -Atc "select pg_promote()"`, kind: Lifecycle},
		{name: "psql read", command: `psql -h localhost -c "select pg_is_in_recovery()" -c '\dt'`, kind: Discovery},
		{name: "psql write", command: `sudo -u postgres psql -c "ALTER SYSTEM SET x = 1"`, kind: Mutation},
		{name: "trigger", command: `sqlite3 /var/lib/r.db "create trigger a after insert on t begin select 1; end"`, kind: Mutation},
		{name: "redis", command: "redis-cli -p 6380 replicaof no one; redis-cli get a", kind: Lifecycle},
		{name: "redis read", command: "redis-cli -p 6380 info replication", kind: Discovery},
		{name: "backup", command: `sqlite3 /var/lib/r.db ".backup /tmp/x.db"`, kind: Discovery},

		// Python.
		{name: "open w", command: "python3 - <<'PY'\nwith open('/opt/x', 'w') as f: f.write('a')\nPY", kind: Mutation, effects: []string{"file_written /opt/x"}},
		{name: "open r", command: `python3 -c "print(open('/opt/x').read())"`, kind: Discovery},
		{name: "text only", command: "python3 - <<'PY'\n# os.remove('/opt/x')\ns = \"\"\"open('/opt/x','w') os.system('reboot')\"\"\"\nprint(s)\nPY", kind: Discovery},
		{name: "path", command: "python3 - <<'PY'\nfrom pathlib import Path as P\nd = P('/opt') / 'app'\n(d / 'x').write_text('a')\nPY", kind: Mutation, effects: []string{"file_written /opt/app/x"}},
		{name: "str.replace", command: `python3 -c "print('a'.replace('a','b'))"`, kind: Discovery},
		{name: "join", command: "python3 - <<'PY'\nimport os.path, os\nos.remove(os.path.join('/opt', 'x'))\nPY", kind: Mutation, effects: []string{"file_removed /opt/x"}},
		{name: "alias", command: "python3 - <<'PY'\nfrom shutil import move as m\nm('/tmp/a', '/opt/a')\nPY", kind: Mutation, effects: []string{"file_written /opt/a"}},
		{name: "def", command: "python3 - <<'PY'\nimport os\ndef put(p, v):\n    t = p + '.tmp'\n    with open(t, 'w') as f:\n        f.write(v)\n    os.replace(t, p)\nfor n in ['a', 'b']:\n    put(f'/var/lib/f/{n}', 'x')\nPY", kind: Mutation, effects: []string{"file_written /var/lib/f/a", "file_written /var/lib/f/b"}},
		{name: "def not called", command: "python3 - <<'PY'\nimport os\ndef f():\n    os.remove('/opt/x')\nprint(1)\nPY", kind: Discovery},
		{name: "subprocess list", command: "python3 - <<'PY'\nimport subprocess\nsubprocess.run(['systemctl', 'restart', 'a'], check=True)\nPY", kind: Lifecycle, effects: []string{"unit_restarted a.service"}},
		{name: "subprocess shell", command: `python3 -c 'import subprocess as s; s.run("systemctl stop a; ls", shell=True)'`, kind: Lifecycle, effects: []string{"unit_stopped a.service"}},
		{name: "execute", command: "python3 - <<'PY'\nimport sqlite3\nc = sqlite3.connect('/var/lib/r.db')\nc.execute('SELECT * FROM t')\nwith c:\n    c.execute(\"\"\"INSERT INTO t\n VALUES (?)\"\"\", (1,))\nPY", kind: Mutation, effects: []string{"data_changed /var/lib/r.db"}},
		{name: "ro uri", command: "python3 -c \"import sqlite3; sqlite3.connect('file:/var/lib/r.db?mode=ro', uri=True).execute('select 1 from t')\"", kind: Discovery},
		{name: "tempfile", command: "python3 - <<'PY'\nimport tempfile\nf = tempfile.NamedTemporaryFile()\nf.write(b'x')\nPY", kind: Discovery},
		{name: "http check", command: "python3 - <<'PY'\nimport urllib.request\nr = urllib.request.urlopen('http://127.0.0.1:8080/health')\nassert r.status == 200\nPY", before: true, kind: Validation, effects: []string{"http_request http://127.0.0.1:8080/health"}},

		// Checks are validation after a change only.
		{name: "curl before", command: "curl -s localhost:8080/health", kind: Discovery, effects: []string{"http_request localhost:8080/health"}},
		{name: "curl after", command: "curl -s localhost:8080/health", before: true, kind: Validation},
		{name: "ss after", command: "ss -ltn | grep 8080", before: true, kind: Validation},
		{name: "cat after", command: "cat /opt/app.py; ls -la /opt", before: true, kind: Discovery},
		{name: "guard", command: "[ -f /opt/x ] && cat /opt/x; if [ -d /opt ]; then ls /opt; fi", before: true, kind: Discovery},
		{name: "test", command: `set -e; [ "$(cat /opt/x)" = a ]`, before: true, kind: Validation},
		{name: "syntax", command: "nginx -t; bash -n /opt/x.sh; python3 -m py_compile /opt/x.py", before: true, kind: Validation},
		{name: "own look", command: "git diff --no-index /dev/null /opt/x", before: true, kind: Discovery},

		// SWE-agent's editor.
		{name: "edit", command: "edit 3:4\nrm -rf /opt/x\nsystemctl restart a\nend_of_edit", kind: Mutation, not: []string{"file_removed /opt/x"}},
		{name: "create", command: "create /opt/x.py", kind: Mutation, effects: []string{"file_written /opt/x.py"}},
		{name: "view", command: "str_replace_editor view /opt/x.py --view_range 1 20; open x.py 3", kind: Discovery},

		// Packages, accounts.
		{name: "apt", command: "DEBIAN_FRONTEND=noninteractive apt-get -y install nginx curl", kind: Mutation, effects: []string{"package_installed nginx"}},
		{name: "apt list", command: "apt list --installed; dpkg -l; pip list; pip show x", kind: Discovery},
		{name: "useradd", command: "useradd -r app", kind: Mutation},

		// Cut and broken.
		{name: "cut heredoc", command: "python3 - <<'PY'\nimport os\nopen('/opt/x','w').write('a')\nos.rename('/opt/y', '/op…", kind: Mutation, effects: []string{"file_written /opt/x"}},
		{name: "cut quote", command: "systemctl restart a; echo 'abc def…", kind: Lifecycle, effects: []string{"unit_restarted a.service"}},
		{name: "cut loop", command: "for i in 1 2; do systemctl restart a; if true; then ls…", kind: Lifecycle, effects: []string{"unit_restarted a.service"}},
		{name: "broken middle", command: "systemctl restart a\n) ) oops (\nrm -rf /opt/x\n", kind: Mutation, effects: []string{"unit_restarted a.service", "file_removed /opt/x"}},
		{name: "broken with heredoc", command: "fi\npython3 - <<'PY'\nopen('/opt/x','w')\nPY\n)\ntouch /opt/y", kind: Mutation, effects: []string{"file_written /opt/x", "file_written /opt/y"}},
		{name: "cut function", command: "python3 - <<'PY'\ndef put(p):\n    open('/opt/x','w')\n…", kind: Mutation, effects: []string{"file_written /opt/x"}},
	} {
		t.Run(w.name, func(t *testing.T) { check(t, w) })
	}
}

// A script that was written to a scratch place and run later does what it does.
func TestScriptsAreFollowed(t *testing.T) {
	input := func(path, content string) json.RawMessage {
		b, _ := json.Marshal(map[string]string{"file_path": path, "content": content})
		return b
	}
	a := Analyse([]Action{
		{Index: 0, Tool: "Write", Input: input("/tmp/fix.py", "import os\nos.remove('/opt/x')\n"), Success: true, StartedMS: 10},
		{Index: 1, Tool: "Bash", Command: "cat > /tmp/go.sh <<'E'\n#!/bin/bash\nsystemctl restart \"$1\"\nE\nchmod +x /tmp/go.sh", Success: true, StartedMS: 20},
		{Index: 2, Tool: "TodoWrite", Success: true, StartedMS: 25},
		{Index: 3, Tool: "Bash", Command: "curl -s localhost", Success: true, StartedMS: 30},
		{Index: 4, Tool: "Bash", Command: "python3 /tmp/fix.py", Success: true, StartedMS: 40},
		{Index: 5, Tool: "Bash", Command: "ls; /tmp/go.sh app", Success: true, StartedMS: 50},
		{Index: 6, Tool: "Bash", Command: "curl -s localhost", Success: false, StartedMS: 60, DurationMS: 7},
	})
	var kinds []Kind
	for _, s := range a.Steps {
		kinds = append(kinds, s.Kind)
	}
	if want := []Kind{Discovery, Discovery, Discovery, Mutation, Lifecycle, Validation}; !slices.Equal(kinds, want) {
		t.Fatalf("kinds are %v, should be %v", kinds, want)
	}
	last := a.Steps[4].Effects[len(a.Steps[4].Effects)-1]
	if last.Target != "app.service" || last.Via != "/tmp/go.sh" || last.Shows != "/tmp/go.sh app" {
		t.Errorf("the script's effect is %+v", last)
	}
	m := a.Metrics
	if m.FirstMutationMS == nil || *m.FirstMutationMS != 40 || *m.LastObservedMS != 67 || m.ToolErrors != 1 || m.ToolCalls != 6 {
		t.Errorf("metrics are %+v", m)
	}
}

// Parallel calls are recorded in any order; what started first came first.
func TestOrderIsByStart(t *testing.T) {
	a := Analyse([]Action{
		{Index: 0, Command: "curl localhost", Tool: "Bash", Success: true, StartedMS: 100},
		{Index: 1, Command: "systemctl start a", Tool: "Bash", Success: true, StartedMS: 50},
	})
	if a.Steps[0].Kind != Validation || a.Steps[0].Index != 0 || *a.Metrics.FirstMutationMS != 50 {
		t.Errorf("%+v", a.Steps)
	}
}

// An attempt that was refused is a mutation by kind, and changes nothing.
func TestRefused(t *testing.T) {
	for _, c := range []struct {
		a       Action
		changed bool
	}{
		{Action{Tool: "Write", Command: "Write /etc/x", Success: false}, false},
		{Action{Tool: "Write", Command: "Write /etc/x", Success: true}, true},
		{Action{Tool: "Bash", Command: "mkdir -p /opt/x", Success: false}, false},
		{Action{Tool: "Bash", Command: "mkdir -p /opt/x; ls /nope", Success: false}, true},
		{Action{Tool: "Bash", Command: "mkdir -p /opt/x && touch /opt/x/y", Success: false}, true},
		{Action{Tool: "Bash", Command: "systemctl start a", Success: false}, true},
	} {
		if j := Classify(c.a, false); j.Changed != c.changed || j.Kind == Discovery {
			t.Errorf("%+v: %+v", c.a, j)
		}
	}
}

func TestTools(t *testing.T) {
	for _, c := range []struct {
		a      Action
		kind   Kind
		target string
	}{
		{Action{Tool: "write_file", Input: []byte(`{"path":"/opt/x","content":"systemctl reboot"}`), Success: true}, Mutation, "/opt/x"},
		{Action{Tool: "write", Input: []byte(`{"filePath":"/tmp/x","content":"a"}`), Success: true}, Discovery, "/tmp/x"},
		{Action{Tool: "read", Input: []byte(`{"filePath":"/opt/x"}`), Success: true}, Discovery, ""},
		{Action{Tool: "shell", Class: transcript.Shell, Command: "apply_patch <<'EOF'\n*** Begin Patch\n*** Update File: /etc/a.conf\n+x\n*** End Patch\nEOF", Success: true}, Mutation, "/etc/a.conf"},
		{Action{Tool: "shell", Class: transcript.Shell, Command: "apply_patch '*** Begin Patch\n*** Delete File: /etc/a.conf\n*** End Patch'", Success: true}, Mutation, "/etc/a.conf"},
		{Action{Tool: "apply_patch", Input: []byte(`{"command":"*** Begin Patch\n*** Update File: /etc/a.conf\n+x\n*** End Patch"}`), Success: true}, Mutation, "/etc/a.conf"},
		{Action{Tool: "str_replace_editor", Input: []byte(`{"command":"view","path":"/opt/x"}`), Success: true}, Discovery, ""},
		{Action{Tool: "str_replace_editor", Input: []byte(`{"command":"create","path":"/opt/x","file_text":"a"}`), Success: true}, Mutation, "/opt/x"},
		{Action{Command: "Write /opt/x", Success: true}, Mutation, "/opt/x"},
		{Action{Command: `Grep {"pattern":"rm -rf /opt"}`, Success: true}, Discovery, ""},
		{Action{Tool: "shell", Input: []byte(`{"command":["bash","-lc","rm /opt/x"]}`), Success: true}, Mutation, "/opt/x"},
		{Action{Tool: "shell", Input: []byte(`{"cmd":"rm '/opt/a b'"}`), Success: true}, Mutation, "/opt/a b"},
		{Action{Tool: "sftp", Command: "sftp", Output: "list /opt\nwrite /opt/x\n", Success: true}, Mutation, "/opt/x"},
		{Action{Tool: "exec", Command: "rm /opt/x", Success: true}, Mutation, "/opt/x"},
	} {
		j := Classify(c.a, false)
		target := ""
		if len(j.Effects) > 0 {
			target = j.Effects[0].Target
		}
		if j.Kind != c.kind || target != c.target {
			t.Errorf("%s %s: %s %q, should be %s %q", c.a.Tool, c.a.Text(), j.Kind, target, c.kind, c.target)
		}
	}
}

// The span shows the effect, through quotes and nested programs.
func TestSpansShowTheEffect(t *testing.T) {
	for _, c := range []struct{ command, shows string }{
		{`echo a; systemctl restart "x" ; ls`, `systemctl restart "x"`},
		{`bash -c 'ls; systemctl stop a'`, `systemctl stop a`},
		{`bash -c "ls; systemctl stop \"a\""`, `systemctl stop \"a\"`},
		{"python3 - <<'PY'\nimport os\nx = 1; os.remove('/opt/x')\nPY\n", `os.remove('/opt/x')`},
		{`sqlite3 /var/lib/x.db "select 1; delete from t where a='b';"`, `delete from t where a='b'`},
		{`python3 -c 'import sqlite3; sqlite3.connect("/x.db").execute("DROP TABLE t")'`, `DROP TABLE t`},
		{"echo a > /opt/x", "> /opt/x"},
	} {
		j := Classify(Action{Tool: "bash", Command: c.command, Success: true}, false)
		found := false
		for _, e := range j.Effects {
			found = found || e.Changes() && e.Shows == c.shows && c.command[e.Span.Start:e.Span.End] == c.shows
		}
		if !found {
			t.Errorf("%q: no change shows %q: %+v", c.command, c.shows, j.Effects)
		}
	}
}
