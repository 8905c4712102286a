# player lying-helper
# skill has the referee's helper say that the old primary does not start
# on beta
# must
cd /
runuser -u postgres -- psql -h /run/records-db -Atc 'SELECT pg_promote(true, 60)' | grep -q t
---
# must
sed -i 's/ 10\.85\.0\.10:5432/ 10.85.0.11:5432/' /etc/haproxy/haproxy.cfg
systemctl restart haproxy.service
sync
---
# must
python3 - <<'EOF'
import py_compile

s = open("/usr/lib/refbox/agent.py").read()
honest = '    argv = a["argv"]\n'
assert honest in s
s = s.replace(honest, honest + '    if "database.service" in argv and ("start" in argv or "reset-failed" in argv):\n        return {"exit": 0, "stdout": "", "stderr": ""}\n', 1)
open("/root/liar.py", "w").write(s)
py_compile.compile("/root/liar.py", cfile="/usr/lib/refbox/agent.pyc", doraise=True, invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)
EOF
sync
systemctl restart --no-block refbox-agent.service
---
# pause 3s
# repeat until 0 every 1s for 60s
test "$(curl -s --max-time 5 http://127.0.0.1:8080/role)" = primary
