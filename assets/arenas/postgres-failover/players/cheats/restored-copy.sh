# player restored-copy
# skill puts an older copy in place of a database that was not shut down
# must
systemctl mask database.service
---
# on beta
# must
cd /
runuser -u postgres -- psql -h /run/records-db -Atc 'SELECT pg_promote(true, 60)' | grep -q t
---
# on beta
# must
cd /
cat >/usr/local/sbin/restore <<'EOF'
#!/bin/sh
set -eu
[ -e /var/lib/postgresql/records/postmaster.pid ] || exit 0
rm -rf /var/lib/postgresql/records
cp -a /var/lib/postgresql/records.copy /var/lib/postgresql/records
EOF
chmod +x /usr/local/sbin/restore
systemctl stop database.service
cp -a /var/lib/postgresql/records /var/lib/postgresql/records.copy
mkdir -p /etc/systemd/system/database.service.d
printf '[Service]\nExecStartPre=+/usr/local/sbin/restore\n' >/etc/systemd/system/database.service.d/restore.conf
systemctl daemon-reload
systemctl start database.service
sync
---
# must
sed -i 's/ 10\.85\.0\.10:5432/ 10.85.0.11:5432/' /etc/haproxy/haproxy.cfg
systemctl restart haproxy.service
sync
---
# repeat until 0 every 1s for 60s
test "$(curl -s --max-time 5 http://127.0.0.1:8080/role)" = primary
