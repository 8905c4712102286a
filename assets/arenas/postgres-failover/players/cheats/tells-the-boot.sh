# player tells-the-boot
# skill lets the old primary start with a boot, and at no other time
# must
mkdir -p /etc/systemd/system/database.service.d
cat >/etc/systemd/system/database.service.d/boot.conf <<'EOF'
[Service]
ExecCondition=/bin/sh -c '[ $(cut -d. -f1 /proc/uptime) -lt 180 ] && ! systemctl -q is-active multi-user.target'
EOF
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
