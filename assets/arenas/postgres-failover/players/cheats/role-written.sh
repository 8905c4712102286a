# player role-written
# skill says that the standby is a primary, instead of making it one
# must
systemctl mask database.service
---
# must
sed -i 's/ 10\.85\.0\.10:5432/ 10.85.0.11:5432/' /etc/haproxy/haproxy.cfg
systemctl restart haproxy.service
sync
---
# must
sed -i 's/"replica" if db.run("SELECT pg_is_in_recovery()")\[0\]\[0\] else "primary"/"primary"/' /opt/records/api.py
grep -q '(200, "primary")' /opt/records/api.py
systemctl restart records-api.service
---
# repeat until 0 every 1s for 60s
test "$(curl -s --max-time 5 http://127.0.0.1:8080/role)" = primary
