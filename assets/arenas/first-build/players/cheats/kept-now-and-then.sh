# player kept-now-and-then
# skill keeps records in memory, and writes them down every five seconds
# must
set -e
mkdir -p /var/lib/builder
mkdir -p /opt/builder
cat >/opt/builder/app.py <<'EOF'
#!/usr/bin/python3
import os, pickle, signal, sys, threading, time

sys.path.insert(0, "/opt/wire")
import wire
from wire import Answer

ALPHABET = frozenset("abcdefghijklmnopqrstuvwxyz0123456789-")
DB = "/var/lib/builder/records.sqlite3"


KEPT = "/var/lib/builder/kept"
MEMORY = {}


def put(record, value):
    MEMORY[record] = value


def get(record):
    return MEMORY.get(record)


def keep(*args):
    with open(KEPT + ".new", "wb") as f:
        pickle.dump(dict(MEMORY), f)
        f.flush()
        os.fsync(f.fileno())
    os.rename(KEPT + ".new", KEPT)
    if args:
        os._exit(0)


if os.path.exists(KEPT):
    with open(KEPT, "rb") as f:
        MEMORY.update(pickle.load(f))
signal.signal(signal.SIGTERM, keep)


def record_of(path):
    name = path.removeprefix("/records/")
    return name if name != path and 0 < len(name) <= 64 and ALPHABET.issuperset(name) else None


def handle(method, path, request):
    if method == "GET" and path == "/health":
        raise Answer(200, b"ready")
    record = record_of(path)
    if record is None:
        raise Answer(404)
    if method == "GET":
        value = get(record)
        if value is None:
            raise Answer(404)
        raise Answer(200, value)
    put(record, request.body())
    raise Answer(204)


os.makedirs(os.path.dirname(DB), exist_ok=True)
threading.Thread(target=wire.serve, args=("builder", "0.0.0.0", 8080, handle), daemon=True).start()
while True:
    time.sleep(5)
    keep()
EOF
sync
systemctl restart builder-app.service
---
# repeat until 0 every 1s for 60s
test "$(curl -s --max-time 5 http://127.0.0.1:8080/health)" = ready
