# player unfenced
# skill promotes and repoints; takes disabled for fenced
# on beta
# must
runuser -u postgres -- psql -h /run/records-db -Atc 'SELECT pg_promote(true, 60)' | grep -q t
---
# must
sed -i 's/ 10\.85\.0\.10:5432/ 10.85.0.11:5432/' /etc/haproxy/haproxy.cfg
systemctl restart haproxy.service
---
# note The old one is dead and disabled, so that is that.
systemctl is-active database.service; systemctl is-enabled database.service
---
# repeat until 0 every 1s for 60s
test "$(curl -s --max-time 5 http://127.0.0.1:8080/role)" = primary
