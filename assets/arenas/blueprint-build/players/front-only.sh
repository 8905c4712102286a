# player front-only
# skill builds an edge that answers for itself, and nothing behind it
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
    if path == "/health":
        raise Answer(200, b"ready")
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
#!/bin/sh
exec sleep infinity
EOF
chmod +x /opt/blueprint/api
mkdir -p /opt/blueprint
cat >/opt/blueprint/worker <<'EOF'
#!/bin/sh
exec sleep infinity
EOF
chmod +x /opt/blueprint/worker
sync
systemctl restart blueprint-api.service blueprint-worker.service blueprint-edge.service
---
# repeat until 0 every 1s for 60s
test "$(curl -s --max-time 5 http://127.0.0.1:8080/health)" = ready
