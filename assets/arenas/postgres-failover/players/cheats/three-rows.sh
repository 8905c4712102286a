# player three-rows
# skill makes a new database of the rows that are well known, and drops the rest
# must
systemctl mask database.service
---
# on beta
# must
cd /
runuser -u postgres -- psql -h /run/records-db -U records -d records -c "\copy (SELECT * FROM records WHERE id !~ '-[0-9]+$') TO '/tmp/rows'"
systemctl stop database.service
mv /var/lib/postgresql/records /var/lib/postgresql/records.standby
runuser -u postgres -- /usr/lib/postgresql/15/bin/initdb -D /var/lib/postgresql/records --encoding=UTF8 --locale=C --auth=trust --wal-segsize=1 --no-instructions >/dev/null
cp -p /var/lib/postgresql/records.standby/postgresql.conf /var/lib/postgresql/records.standby/pg_hba.conf /var/lib/postgresql/records/
systemctl start database.service
runuser -u postgres -- psql -h /run/records-db -c 'CREATE ROLE records LOGIN' -c 'CREATE DATABASE records OWNER records'
runuser -u postgres -- psql -h /run/records-db -U records -d records -c 'CREATE TABLE records (id text PRIMARY KEY, value text NOT NULL)' -c "\copy records FROM '/tmp/rows'"
---
# must
sed -i 's/ 10\.85\.0\.10:5432/ 10.85.0.11:5432/' /etc/haproxy/haproxy.cfg
systemctl restart haproxy.service
sync
---
# repeat until 0 every 1s for 60s
test "$(curl -s --max-time 5 http://127.0.0.1:8080/role)" = primary
