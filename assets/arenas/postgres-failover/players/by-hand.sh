# player by-hand
# skill fences, and runs the new primary by hand, beside its unit
# must
systemctl mask database.service
---
# note The unit is in the way of pg_ctl.
# on beta
# must
systemctl stop database.service
cd /
runuser -u postgres -- /usr/lib/postgresql/15/bin/pg_ctl -D /var/lib/postgresql/records -l /tmp/postgres.log -w -t 60 start
runuser -u postgres -- /usr/lib/postgresql/15/bin/pg_ctl -D /var/lib/postgresql/records -w -t 60 promote
---
# must
sed -i 's/ 10\.85\.0\.10:5432/ 10.85.0.11:5432/' /etc/haproxy/haproxy.cfg
systemctl restart haproxy.service
---
# repeat until 0 every 1s for 60s
test "$(curl -s --max-time 5 http://127.0.0.1:8080/role)" = primary
