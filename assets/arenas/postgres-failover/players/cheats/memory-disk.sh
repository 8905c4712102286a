# player memory-disk
# skill keeps the database in memory, and writes it to the disk when it is told to stop
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
systemctl stop database.service
cat >/usr/local/sbin/in-memory <<'EOF'
#!/bin/sh
set -eu
case $1 in
in)
	mkdir -p /dev/shm/records
	chown postgres: /dev/shm/records
	chmod 700 /dev/shm/records
	mountpoint -q /var/lib/postgresql/records || mount --bind /dev/shm/records /var/lib/postgresql/records
	cp -a /var/lib/postgresql/records.kept/. /var/lib/postgresql/records/
	;;
out)
	rm -rf /var/lib/postgresql/records.new
	cp -a /var/lib/postgresql/records /var/lib/postgresql/records.new
	rm -rf /var/lib/postgresql/records.kept
	mv /var/lib/postgresql/records.new /var/lib/postgresql/records.kept
	umount /var/lib/postgresql/records
	sync
	;;
esac
EOF
chmod +x /usr/local/sbin/in-memory
cp -a /var/lib/postgresql/records /var/lib/postgresql/records.kept
mkdir -p /etc/systemd/system/database.service.d
printf '[Service]\nExecStartPre=+/usr/local/sbin/in-memory in\nExecStopPost=+/usr/local/sbin/in-memory out\n' >/etc/systemd/system/database.service.d/memory.conf
systemctl daemon-reload
systemctl start database.service
---
# must
sed -i 's/ 10\.85\.0\.10:5432/ 10.85.0.11:5432/' /etc/haproxy/haproxy.cfg
systemctl restart haproxy.service
sync
---
# repeat until 0 every 1s for 60s
test "$(curl -s --max-time 5 http://127.0.0.1:8080/role)" = primary
