# player hasty
# skill switches first, and starts v2 behind the switch
# must
set -e
mkdir -p /opt/rollout
cat >/opt/rollout/v2.py <<'EOF'
#!/usr/bin/python3
import re, sys

sys.path.insert(0, "/opt/rollout")
import wire
from store import Store, state
from wire import Answer

STORE = Store(state("records.sqlite3"))


def put(record, value):
    STORE.put(record, value)


def get(record):
    return STORE.get(record)


def handle(method, path, request):
    if method == "GET" and path == "/health":
        raise Answer(200, b"ready")
    if method == "GET" and path == "/version":
        raise Answer(200, b"v2")
    m = re.fullmatch("/records/([a-z0-9-]{1,64})", path)
    if m is None:
        raise Answer(404)
    if method == "GET":
        value = get(m[1])
        if value is None:
            raise Answer(404)
        raise Answer(200, value)
    put(m[1], request.body())
    raise Answer(204)


wire.serve("v2", "0.0.0.0", 8082, handle)
EOF
printf '8082\n' >/var/lib/rollout/upstream
---
# pause 1s
# must
systemctl restart rollout-v2.service
---
# repeat until 0 every 1s for 60s
test "$(curl -s --max-time 5 http://127.0.0.1:8080/version)" = v2
