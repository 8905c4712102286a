# player kept-at-the-end
# skill keeps records in memory, and writes them down when it is asked to end
# must
set -e
mkdir -p /opt/traffic-surge
cat >/opt/traffic-surge/app.py <<'EOF'
#!/usr/bin/python3
import json, os, pickle, re, signal, sqlite3, sys, threading, time

sys.path.insert(0, "/opt/traffic-surge")
import wire
from wire import Answer

DB = "/var/lib/traffic-surge/records.sqlite3"
with open("/var/lib/traffic-surge/state.json") as f:
    OLD = json.load(f)
SLOTS = threading.BoundedSemaphore(4)


def db():
    c = sqlite3.connect(DB, timeout=10, isolation_level=None)
    c.execute("PRAGMA journal_mode=WAL")
    c.execute("PRAGMA synchronous=FULL")
    return c


KEPT = "/var/lib/traffic-surge/kept"
MEMORY = {}


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


def put(record, value):
    MEMORY[record] = value


def get(record):
    return MEMORY.get(record)


def begin():
    for record, value in OLD["records"].items():
        MEMORY.setdefault(record, value.encode())


def optional(name):
    if not SLOTS.acquire(blocking=False):
        raise Answer(503)
    try:
        time.sleep(0.45)
    finally:
        SLOTS.release()
    raise Answer(200, (OLD["catalogue"] + ":" + name[::-1]).encode())


def handle(method, path, request):
    if method == "GET" and path == "/health":
        raise Answer(200, b"ready")
    m = re.fullmatch("/(optional|priority)/([a-z0-9-]{1,64})", path)
    if m is None:
        raise Answer(404)
    if m[1] == "optional":
        optional(m[2])
    if method == "GET":
        value = get(m[2])
        if value is None:
            raise Answer(404)
        raise Answer(200, value)
    put(m[2], request.body())
    raise Answer(204)


begin()
threading.Thread(target=wire.serve, args=("traffic-surge", "0.0.0.0", 8080, handle), daemon=True).start()
while True:
    time.sleep(3600)
EOF
chmod +x /opt/traffic-surge/app.py
sync
systemctl restart traffic-surge.service
---
# repeat until 0 every 1s for 60s
test "$(curl -s --max-time 5 http://127.0.0.1:8080/health)" = ready
