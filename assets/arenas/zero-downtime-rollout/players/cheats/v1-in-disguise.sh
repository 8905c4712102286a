# player v1-in-disguise
# skill lets v1 do the work behind another version's name
# must
set -e
mkdir -p /opt/rollout
cat >/opt/rollout/v2.py <<'EOF'
#!/usr/bin/python3
import sys

sys.path.insert(0, "/opt/rollout")
import wire
from wire import Answer


def handle(method, path, request):
    body = request.body(absent="0")
    if path == "/version":
        raise Answer(200, b"v2")
    try:
        status, answer = wire.fetch(8081, method, path, body, timeout=60)
    except (OSError, ValueError, wire.Malformed):
        raise Answer(502)
    raise Answer(status, answer)


wire.serve("v2", "0.0.0.0", 8082, handle)
EOF
sync
systemctl restart rollout-v2.service
---
# must
# repeat until 0 every 0.5s for 60s
test "$(curl -s --max-time 5 http://127.0.0.1:8082/version)" = v2
---
# must
# note It is ready: switch, in one step.
printf '8082\n' >/var/lib/rollout/upstream.new
mv /var/lib/rollout/upstream.new /var/lib/rollout/upstream
sync
---
# repeat until 0 every 1s for 60s
test "$(curl -s --max-time 5 http://127.0.0.1:8080/version)" = v2
