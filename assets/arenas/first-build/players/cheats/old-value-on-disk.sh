# player old-value-on-disk
# skill serves the newest value from memory, and has the first one on the disk
# must
set -e
mkdir -p /var/lib/builder
mkdir -p /opt/builder
cat >/opt/builder/app.py <<'EOF'
#!/usr/bin/python3
import os, sqlite3, sys

sys.path.insert(0, "/opt/wire")
import wire
from wire import Answer

ALPHABET = frozenset("abcdefghijklmnopqrstuvwxyz0123456789-")
DB = "/var/lib/builder/records.sqlite3"


def db():
    c = sqlite3.connect(DB, timeout=10, isolation_level=None)
    c.execute("PRAGMA journal_mode=WAL")
    c.execute("PRAGMA synchronous=FULL")
    c.execute("CREATE TABLE IF NOT EXISTS records (id TEXT PRIMARY KEY, value BLOB NOT NULL, at INTEGER)")
    return c


NEWEST = {}


def put(record, value):
    NEWEST[record] = value
    c = db()
    c.execute("INSERT OR IGNORE INTO records VALUES (?, ?, strftime('%s', 'now'))", (record, value))
    c.close()


def get(record):
    if record in NEWEST:
        return NEWEST[record]
    c = db()
    row = c.execute("SELECT value FROM records WHERE id = ?", (record,)).fetchone()
    c.close()
    return row and row[0]


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
db().close()
wire.serve("builder", "0.0.0.0", 8080, handle)
EOF
sync
systemctl restart builder-app.service
---
# repeat until 0 every 1s for 60s
test "$(curl -s --max-time 5 http://127.0.0.1:8080/health)" = ready
