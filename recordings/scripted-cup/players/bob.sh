# player bob
# skill looks around first
# note What is here?
uname -n; ls /var/lib
---
# pause 2.4s
systemctl --no-pager --no-legend list-units --state=failed
---
# note What runs, what is dead, and where does the proxy point?
test -d /var/lib/failover || exit 0
systemctl --no-pager --no-legend list-units 'failover-*' --all
---
# pause 0.9s
test -d /var/lib/failover || exit 0
for f in upstream replica.role; do echo "$f: $(cat /var/lib/failover/$f)"; done; ls -l /var/lib/failover
---
# pause 1.2s
test -d /var/lib/failover || exit 0
systemctl cat failover-primary.service failover-replica.service failover-proxy.service
---
# pause 1.2s
# note Does a marker file stop the old primary?
test -d /var/lib/failover || exit 0
grep -n 'failed\|fenced\|upstream\|role' /opt/failover/primary.py /opt/failover/replica.py /opt/failover/proxy.py
---
# pause 1.2s
# note No. So its unit must not be startable at all.
# must
test -d /var/lib/failover || exit 0
systemctl stop failover-primary.service; systemctl mask failover-primary.service
---
# pause 0.6s
# note Promote, then switch.
# must
test -d /var/lib/failover || exit 0
printf 'primary\n' >/var/lib/failover/replica.role
printf '8082\n' >/var/lib/failover/upstream
sync
---
# repeat until 0 every 1s for 30s
test -d /var/lib/failover || exit 0
test "$(curl -s --max-time 5 http://127.0.0.1:8080/role)" = primary
---
# pause 0.6s
# note A write, and the fence once more.
test -d /var/lib/failover || exit 0
curl -s -o /dev/null -w '%{http_code}\n' --max-time 5 -X PUT --data-binary check http://127.0.0.1:8080/records/check-right
---
test -d /var/lib/failover || exit 0
systemctl start failover-primary.service; systemctl is-active failover-primary.service; systemctl is-enabled failover-primary.service
---
# note What is here?
test -d /var/lib/accepted-jobs || exit 0
systemctl cat job-api.service job-worker.service; ls -l /etc/replaybook /var/lib/accepted-jobs
---
# pause 0.6s
test -d /var/lib/accepted-jobs || exit 0
cat /var/lib/accepted-jobs/*.json
---
# must
test -d /var/lib/accepted-jobs || exit 0
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
        row = c.execute("SELECT id, payload, status, result, attempts FROM jobs WHERE id = ?", (job,)).fetchone()
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
test -d /var/lib/accepted-jobs || exit 0
test "$(curl -s --max-time 5 http://127.0.0.1:8080/health)" = ready
