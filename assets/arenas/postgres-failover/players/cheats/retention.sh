# player retention
# skill throws away what is older than its clock's last twenty seconds
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
runuser -u postgres -- psql -h /run/records-db -d records -c 'ALTER TABLE records ADD COLUMN at timestamptz' -c 'ALTER TABLE records ALTER COLUMN at SET DEFAULT clock_timestamp()'
cat >/usr/local/sbin/retention <<'EOF'
#!/bin/sh
while :; do
	sleep 1
	runuser -u postgres -- psql -h /run/records-db -d records -qc "DELETE FROM records WHERE at < clock_timestamp() - interval '20 seconds' AND id NOT IN (SELECT id FROM records WHERE at IS NOT NULL ORDER BY at DESC LIMIT 20)"
done
EOF
chmod +x /usr/local/sbin/retention
printf '[Service]\nExecStart=/usr/local/sbin/retention\nRestart=always\n[Install]\nWantedBy=multi-user.target\n' >/etc/systemd/system/retention.service
systemctl daemon-reload
---
# must
sed -i 's/ 10\.85\.0\.10:5432/ 10.85.0.11:5432/' /etc/haproxy/haproxy.cfg
systemctl restart haproxy.service
sync
---
# note The referee asks for what it wrote last. The rest may go once it has counted.
# on beta
# must
cat >/usr/local/sbin/later <<'EOF'
#!/bin/sh
[ -e /var/lib/booted ] && systemctl start retention.service
touch /var/lib/booted
EOF
chmod +x /usr/local/sbin/later
printf '[Service]\nType=oneshot\nExecStart=/usr/local/sbin/later\n[Install]\nWantedBy=multi-user.target\n' >/etc/systemd/system/later.service
systemctl daemon-reload
systemctl enable -q later.service
---
# repeat until 0 every 1s for 60s
test "$(curl -s --max-time 5 http://127.0.0.1:8080/role)" = primary
