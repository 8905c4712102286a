# player forgets-by-the-clock
# skill takes the clock's word for a job's age, and forgets what is older than ten minutes
# must
set -e
mkdir -p /etc/replaybook /var/lib/jobs
mkdir -p /opt/jobs
cat >/opt/jobs/api.py <<'EOF'
#!/usr/bin/python3
import json, os, sqlite3, sys

sys.path.insert(0, "/opt/wire")
import wire
from wire import Answer

ALPHABET = frozenset("abcdefghijklmnopqrstuvwxyz0123456789-")
DB = "/var/lib/jobs/jobs.sqlite3"


def db():
    c = sqlite3.connect(DB, timeout=10, isolation_level=None)
    c.execute("PRAGMA journal_mode=WAL")
    c.execute("PRAGMA synchronous=FULL")
    c.execute("CREATE TABLE IF NOT EXISTS jobs (id TEXT PRIMARY KEY, payload TEXT NOT NULL, status TEXT NOT NULL, result TEXT, attempts INTEGER NOT NULL, at INTEGER)")
    return c


def accept(c, job, payload):
    c.execute("INSERT OR IGNORE INTO jobs VALUES (?, ?, 'accepted', NULL, 0, strftime('%s', 'now'))", (job, payload))


def take_over(c):
    for name in os.listdir("/var/lib/accepted-jobs"):
        if not name.endswith(".json"):
            continue
        with open("/var/lib/accepted-jobs/" + name) as f:
            job = json.load(f)
        accept(c, job["id"], job["payload"])


def show(row):
    return dict(zip(("id", "payload", "status", "result", "attempts"), row))


def job_of(path):
    name = path.removeprefix("/jobs/")
    return name if name != path and 0 < len(name) <= 64 and ALPHABET.issuperset(name) else None


def handle(method, path, request):
    if method == "GET" and path == "/health":
        raise Answer(200, b"ready")
    job = job_of(path)
    if job is None:
        raise Answer(404)
    c = db()
    if method == "GET":
        row = c.execute("SELECT id, payload, status, result, attempts FROM jobs WHERE id = ? AND abs(strftime('%s', 'now') - at) < 600", (job,)).fetchone()
        c.close()
        if row is None:
            raise Answer(404)
        raise Answer(200, json.dumps(show(row)).encode())
    accept(c, job, request.body().decode())
    c.close()
    raise Answer(202)


os.makedirs(os.path.dirname(DB), exist_ok=True)
c = db()
take_over(c)
c.close()
wire.serve("jobs", "0.0.0.0", 8080, handle, ("GET", "PUT", "POST", "DELETE"))
EOF
mkdir -p /opt/jobs
cat >/opt/jobs/worker.py <<'EOF'
#!/usr/bin/python3
import os, sqlite3, time

DB = "/var/lib/jobs/jobs.sqlite3"


def work():
    c = sqlite3.connect(DB, timeout=10, isolation_level=None)
    c.execute("PRAGMA journal_mode=WAL")
    c.execute("PRAGMA synchronous=FULL")
    while True:
        row = c.execute("SELECT id, payload FROM jobs WHERE status = 'accepted' ORDER BY at LIMIT 1").fetchone()
        if row is None:
            time.sleep(0.1)
            continue
        # The result and the count come in one transaction, so a crash before it
        # leaves the job as it was.
        c.execute("UPDATE jobs SET status = 'completed', result = ?, attempts = attempts + 1 WHERE id = ? AND status = 'accepted'",
                  ("processed:" + row[1], row[0]))


while True:
    try:
        work()
    except sqlite3.Error:
        time.sleep(0.2)
EOF
mkdir -p /etc/replaybook
cat >/etc/replaybook/job-api-start <<'EOF'
#!/bin/sh
exec /usr/bin/python3 -S /opt/jobs/api.py
EOF
chmod +x /etc/replaybook/job-api-start
mkdir -p /etc/replaybook
cat >/etc/replaybook/job-worker-start <<'EOF'
#!/bin/sh
exec /usr/bin/python3 -S /opt/jobs/worker.py
EOF
chmod +x /etc/replaybook/job-worker-start
sync
systemctl restart job-api.service job-worker.service
---
# repeat until 0 every 1s for 60s
test "$(curl -s --max-time 5 http://127.0.0.1:8080/health)" = ready
