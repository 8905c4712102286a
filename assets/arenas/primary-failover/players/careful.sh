# player careful
# skill slow and careful, and right
# note First, read everything.
systemctl --no-pager status failover-seed.service failover-primary.service failover-replica.service failover-proxy.service
---
# pause 4s
systemctl cat failover-primary.service
---
# pause 4s
cat /opt/failover/primary.py
---
# pause 4s
cat /opt/failover/replica.py
---
# pause 4s
cat /opt/failover/proxy.py
---
# pause 4s
ls -l /var/lib/failover; cat /var/lib/failover/upstream /var/lib/failover/replica.role
---
# pause 3s
# note Is the replica sound?
curl -s --max-time 5 http://127.0.0.1:8082/health; echo; curl -s --max-time 5 http://127.0.0.1:8082/role
---
# pause 3s
# note A copy before anything is changed.
cp /var/lib/failover/replica.sqlite3 /root/replica.sqlite3.before
---
# pause 3s
# note Fence first: the unit only runs where a file is that nobody makes.
# must
mkdir -p /etc/systemd/system/failover-primary.service.d
printf '[Unit]\nConditionPathExists=/etc/failover/old-primary-may-run\n' >/etc/systemd/system/failover-primary.service.d/fence.conf
systemctl daemon-reload
---
# pause 2s
systemctl cat failover-primary.service
---
# pause 2s
# note Does the fence hold?
systemctl start failover-primary.service; systemctl is-active failover-primary.service; systemctl stop failover-primary.service
---
# pause 3s
# note Promote.
# must
printf 'primary\n' >/var/lib/failover/replica.role.new
mv /var/lib/failover/replica.role.new /var/lib/failover/replica.role
sync
---
# pause 3s
curl -s --max-time 5 http://127.0.0.1:8082/role
---
# pause 2s
# note Switch.
# must
printf '8082\n' >/var/lib/failover/upstream.new
mv /var/lib/failover/upstream.new /var/lib/failover/upstream
sync
---
# repeat until 0 every 1s for 30s
test "$(curl -s --max-time 5 http://127.0.0.1:8080/role)" = primary
---
# pause 2s
curl -s -o /dev/null -w '%{http_code}\n' --max-time 5 -X PUT --data-binary check http://127.0.0.1:8080/records/check-careful
---
# pause 1s
curl -s --max-time 5 http://127.0.0.1:8080/records/check-careful
