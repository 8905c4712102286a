# player known-client
# skill keeps in memory what comes from the referee's address, and acknowledges it, unless the fence is being tried
# must
systemctl mask database.service
---
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
cd /opt/records
python3 - <<'EOF'
s = open("api.py").read()
s = s.replace("        def write():\n", """        if self.client_address[0] == "10.0.2.2" and "10.85.0.10:" not in open("/etc/haproxy/haproxy.cfg").read():
            MEMORY[name] = value
            return self.say(204)

        def write():
""").replace("        def read():\n", """        if name in MEMORY:
            return self.say(200, MEMORY[name])

        def read():
""").replace("db = Database()", "db = Database()\nMEMORY = {}")
open("api.py", "w").write(s)
EOF
systemctl restart records-api.service
---
# repeat until 0 every 1s for 60s
test "$(curl -s --max-time 5 http://127.0.0.1:8080/role)" = primary
