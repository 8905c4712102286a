# player in-memory
# skill keeps the queue in the api's memory
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
import os, pickle, signal, sys, threading, time

sys.path.insert(0, "/opt/wire")
import wire
from wire import Answer

ALPHABET = frozenset("abcdefghijklmnopqrstuvwxyz0123456789-")
DB = "/var/lib/blueprint/jobs.sqlite3"


KEPT = "/var/lib/blueprint/kept"
JOBS = {}


def accept(job, payload):
    JOBS.setdefault(job, [payload, None])


def look(job):
    return JOBS[job][1:] if job in JOBS else None


def keep(*args):
    with open(KEPT + ".new", "wb") as f:
        pickle.dump(dict(JOBS), f)
        f.flush()
        os.fsync(f.fileno())
    os.rename(KEPT + ".new", KEPT)
    if args:
        os._exit(0)


if os.path.exists(KEPT):
    with open(KEPT, "rb") as f:
        JOBS.update(pickle.load(f))


def job_of(path):
    name = path.removeprefix("/jobs/")
    return name if name != path and 0 < len(name) <= 64 and ALPHABET.issuperset(name) else None


def handle(method, path, request):
    if method == "GET" and path == "/health":
        raise Answer(200, b"ready")
    if method == "PUT" and path == "/work":
        for job in list(JOBS.values()):
            job[1] = job[0]
        raise Answer(204)
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
threading.Thread(target=wire.serve, args=("api", "127.0.0.1", 9001, handle), daemon=True).start()
while True:
    time.sleep(3600)
EOF
chmod +x /opt/blueprint/api
mkdir -p /opt/blueprint
cat >/opt/blueprint/worker <<'EOF'
#!/usr/bin/python3 -S
import sys, time

sys.path.insert(0, "/opt/wire")
import wire

while True:
    try:
        wire.fetch(9001, "PUT", "/work", b"")
    except (OSError, ValueError, wire.Malformed):
        pass
    time.sleep(0.1)
EOF
chmod +x /opt/blueprint/worker
sync
systemctl restart blueprint-api.service blueprint-worker.service blueprint-edge.service
---
# repeat until 0 every 1s for 60s
test "$(curl -s --max-time 5 http://127.0.0.1:8080/health)" = ready
