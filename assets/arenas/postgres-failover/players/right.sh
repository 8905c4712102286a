# player right
# skill fences, promotes, repoints, and looks whether it holds
# note What runs where, and how far is the standby?
systemctl --no-pager --no-legend list-units 'database*' 'records*' 'haproxy*' --all; cat /etc/haproxy/haproxy.cfg
---
# on beta
runuser -u postgres -- psql -h /run/records-db -Atc 'SELECT pg_is_in_recovery(), pg_last_wal_receive_lsn(), pg_last_wal_replay_lsn()'
---
# pause 1s
# note First the old one must never come back.
# must
systemctl stop database.service
systemctl mask database.service
---
# note Promote.
# on beta
# must
runuser -u postgres -- psql -h /run/records-db -Atc 'SELECT pg_promote(true, 60)' | grep -q t
---
# note Repoint.
# must
sed -i 's/ 10\.85\.0\.10:5432/ 10.85.0.11:5432/' /etc/haproxy/haproxy.cfg
systemctl restart haproxy.service
sync
---
# repeat until 0 every 1s for 60s
test "$(curl -s --max-time 5 http://127.0.0.1:8080/role)" = primary
---
# note A write, and the fence once more.
curl -s -o /dev/null -w '%{http_code}\n' --max-time 10 -X PUT --data-binary check http://127.0.0.1:8080/records/check-right; systemctl start database.service; systemctl is-active database.service
