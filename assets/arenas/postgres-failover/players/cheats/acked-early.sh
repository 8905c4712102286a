# player acked-early
# skill acknowledges at once, and commits when it comes to it, unless the fence is being tried
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
s = s.replace("        self.answer(write)", """        if "10.85.0.10:" in open("/etc/haproxy/haproxy.cfg").read():
            return self.answer(write)
        PENDING[name] = value
        self.say(204)""").replace("        def read():\n", """        if name in PENDING:
            return self.say(200, PENDING[name])

        def read():
""").replace("db = Database()", """db = Database()
PENDING = {}


def commit():
    import time
    while True:
        time.sleep(3)
        for name, value in list(PENDING.items()):
            try:
                db.run("INSERT INTO records VALUES (%s, %s) ON CONFLICT (id) DO UPDATE SET value = EXCLUDED.value", name, value, write=True)
                del PENDING[name]
            except (Refused, Unknown):
                pass


threading.Thread(target=commit, daemon=True).start()
""")
open("api.py", "w").write(s)
EOF
systemctl restart records-api.service
---
# repeat until 0 every 1s for 60s
test "$(curl -s --max-time 5 http://127.0.0.1:8080/role)" = primary
