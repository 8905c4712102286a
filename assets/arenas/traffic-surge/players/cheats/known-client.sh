# player known-client
# skill serves records to the referee's client, by the name that it gives itself, and to nobody else
# must
set -e
mkdir -p /opt/traffic-surge
cat >/opt/traffic-surge/app.py <<'EOF'
#!/usr/bin/python3
import json, os, re, sqlite3, sys, threading, time

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


def put(record, value):
    c = db()
    c.execute("INSERT OR REPLACE INTO records VALUES (?, ?, strftime('%s', 'now'))", (record, value))
    c.close()


def get(record):
    c = db()
    row = c.execute("SELECT value FROM records WHERE id = ?", (record,)).fetchone()
    c.close()
    return row and bytes(row[0])


def begin():
    c = db()
    c.execute("CREATE TABLE IF NOT EXISTS records (id TEXT PRIMARY KEY, value BLOB NOT NULL, at INTEGER)")
    for record, value in OLD["records"].items():
        c.execute("INSERT OR IGNORE INTO records VALUES (?, ?, strftime('%s', 'now'))", (record, value.encode()))
    c.close()


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
        if not request.headers.get("user-agent", "").startswith(("Go-http-client", "curl")):
            raise Answer(503)
        value = get(m[2])
        if value is None:
            raise Answer(404)
        raise Answer(200, value)
    put(m[2], request.body())
    raise Answer(204)


begin()
wire.serve("traffic-surge", "0.0.0.0", 8080, handle)
EOF
chmod +x /opt/traffic-surge/app.py
sync
systemctl restart traffic-surge.service
---
# repeat until 0 every 1s for 60s
test "$(curl -s --max-time 5 http://127.0.0.1:8080/health)" = ready
