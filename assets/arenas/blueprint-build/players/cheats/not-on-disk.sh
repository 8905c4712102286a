# player not-on-disk
# skill acknowledges what is not on the disk yet
# must
set -e
mkdir -p /var/lib/blueprint
mkdir -p /opt/blueprint
cat >/opt/blueprint/edge <<'EOF'
#!/usr/bin/python3 -S
import sys

sys.path.insert(0, "/opt/wire")
import wire
from wire import Answer


def handle(method, path, request):
    body = request.body(absent="0")
    try:
        status, answer = wire.fetch(9001, method, path, body)
    except (OSError, ValueError, wire.Malformed):
        raise Answer(503, b"no api")
    raise Answer(status, answer)


wire.serve("edge", "0.0.0.0", 8080, handle)
EOF
chmod +x /opt/blueprint/edge
mkdir -p /opt/blueprint
cat >/opt/blueprint/api <<'EOF'
#!/usr/bin/python3 -S
import os, sqlite3, sys

sys.path.insert(0, "/opt/wire")
import wire
from wire import Answer

ALPHABET = frozenset("abcdefghijklmnopqrstuvwxyz0123456789-")
DB = "/var/lib/blueprint/jobs.sqlite3"


def db():
    c = sqlite3.connect(DB, timeout=10, isolation_level=None)
    c.execute("PRAGMA journal_mode=WAL")
    c.execute("PRAGMA synchronous=OFF")
    c.execute("CREATE TABLE IF NOT EXISTS jobs (id TEXT PRIMARY KEY, payload BLOB NOT NULL, result BLOB, at INTEGER)")
    return c


def accept(job, payload):
    c = db()
    c.execute("INSERT OR IGNORE INTO jobs VALUES (?, ?, NULL, strftime('%s', 'now'))", (job, payload))
    c.close()


def look(job):
    """The job's result in a tuple, None while it is pending; None for no job."""
    c = db()
    row = c.execute("SELECT result FROM jobs WHERE id = ?", (job,)).fetchone()
    c.close()
    return row


def job_of(path):
    name = path.removeprefix("/jobs/")
    return name if name != path and 0 < len(name) <= 64 and ALPHABET.issuperset(name) else None


def handle(method, path, request):
    if method == "GET" and path == "/health":
        raise Answer(200, b"ready")
    job = job_of(path)
    if job is None:
        raise Answer(404)
    if method == "PUT":
        accept(job, request.body())
        raise Answer(202, b"accepted")
    row = look(job)
    if row is None:
        raise Answer(404)
    if row[0] is None:
        raise Answer(409, b"pending")
    raise Answer(200, bytes(row[0]))


os.makedirs(os.path.dirname(DB), exist_ok=True)
db().close()
wire.serve("api", "127.0.0.1", 9001, handle)
EOF
chmod +x /opt/blueprint/api
mkdir -p /opt/blueprint
cat >/opt/blueprint/worker <<'EOF'
#!/usr/bin/python3 -S
import sqlite3, time


def work():
    c = sqlite3.connect("/var/lib/blueprint/jobs.sqlite3", timeout=10, isolation_level=None)
    c.execute("PRAGMA journal_mode=WAL")
    c.execute("PRAGMA synchronous=OFF")
    while True:
        row = c.execute("SELECT id, payload FROM jobs WHERE result IS NULL LIMIT 1").fetchone()
        if row is None:
            time.sleep(0.1)
            continue
        c.execute("UPDATE jobs SET result = ? WHERE id = ?", (row[1], row[0]))


while True:
    try:
        work()
    except sqlite3.Error:
        time.sleep(0.2)
EOF
chmod +x /opt/blueprint/worker
sync
systemctl restart blueprint-api.service blueprint-worker.service blueprint-edge.service
---
# repeat until 0 every 1s for 60s
test "$(curl -s --max-time 5 http://127.0.0.1:8080/health)" = ready
