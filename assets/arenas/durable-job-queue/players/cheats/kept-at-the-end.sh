# player kept-at-the-end
# skill keeps jobs in memory, and writes them down when it is asked to end
# must
set -e
mkdir -p /etc/replaybook /var/lib/jobs
mkdir -p /opt/jobs
cat >/opt/jobs/api.py <<'EOF'
#!/usr/bin/python3
import fcntl, json, os, signal, sqlite3, sys, threading, time

sys.path.insert(0, "/opt/wire")
import wire
from wire import Answer

ALPHABET = frozenset("abcdefghijklmnopqrstuvwxyz0123456789-")
DB = "/var/lib/jobs/jobs.sqlite3"


KEPT = "/var/lib/jobs/kept.json"
LOCK = threading.RLock()
MEMORY = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)


class db:
    def __init__(self):
        LOCK.acquire()

    def execute(self, *args):
        return MEMORY.execute(*args)

    def close(self):
        LOCK.release()


def keep(*args):
    with LOCK:
        rows = MEMORY.execute("SELECT * FROM jobs").fetchall()
    with open(KEPT, "w") as f:
        json.dump(rows, f)
        f.flush()
        os.fsync(f.fileno())
    if args:
        os._exit(0)


def works():
    try:
        with open("/run/job-worker.lock") as f:
            fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        pass
    return False


def work():
    while True:
        if works():
            with LOCK:
                MEMORY.execute("UPDATE jobs SET status = 'completed', result = 'processed:' || payload, attempts = 1 WHERE status = 'accepted'")
        time.sleep(0.1)


def create(c):
    c.execute("CREATE TABLE IF NOT EXISTS jobs (id TEXT PRIMARY KEY, payload TEXT NOT NULL, status TEXT NOT NULL, result TEXT, attempts INTEGER NOT NULL, at INTEGER)")


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
create(c)
if os.path.exists(KEPT):
    with open(KEPT) as f:
        for row in json.load(f):
            c.execute("INSERT INTO jobs VALUES (?, ?, ?, ?, ?, ?)", row)
take_over(c)
c.close()
signal.signal(signal.SIGTERM, keep)
threading.Thread(target=work, daemon=True).start()
threading.Thread(target=wire.serve, args=("jobs", "0.0.0.0", 8080, handle, ("GET", "PUT", "POST", "DELETE")), daemon=True).start()
while True:
    time.sleep(3600)
EOF
mkdir -p /opt/jobs
cat >/opt/jobs/worker.py <<'EOF'
#!/usr/bin/python3
import fcntl, time

f = open("/run/job-worker.lock", "w")
fcntl.flock(f, fcntl.LOCK_EX)
while True:
    time.sleep(3600)
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
