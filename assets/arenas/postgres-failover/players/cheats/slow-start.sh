# player slow-start
# skill has the old primary wait until nobody looks any more, and then start
# must
mkdir -p /etc/systemd/system/database.service.d
printf '[Service]\nExecStartPre=/bin/sleep 20\n' >/etc/systemd/system/database.service.d/slow.conf
systemctl daemon-reload
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
# repeat until 0 every 1s for 60s
test "$(curl -s --max-time 5 http://127.0.0.1:8080/role)" = primary
