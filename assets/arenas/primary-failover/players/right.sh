# player right
# skill does it right after a look around
# note What runs, what is dead, and where does the proxy point?
systemctl --no-pager --no-legend list-units 'failover-*' --all
---
# pause 1.5s
for f in upstream replica.role; do echo "$f: $(cat /var/lib/failover/$f)"; done; ls -l /var/lib/failover
---
# pause 2s
systemctl cat failover-primary.service failover-replica.service failover-proxy.service
---
# pause 2s
# note Does a marker file stop the old primary?
grep -n 'failed\|fenced\|upstream\|role' /opt/failover/primary.py /opt/failover/replica.py /opt/failover/proxy.py
---
# pause 2s
# note No. So its unit must not be startable at all.
# must
systemctl stop failover-primary.service; systemctl mask failover-primary.service
---
# pause 1s
# note Promote, then switch.
# must
printf 'primary\n' >/var/lib/failover/replica.role
printf '8082\n' >/var/lib/failover/upstream
sync
---
# repeat until 0 every 1s for 30s
test "$(curl -s --max-time 5 http://127.0.0.1:8080/role)" = primary
---
# pause 1s
# note A write, and the fence once more.
curl -s -o /dev/null -w '%{http_code}\n' --max-time 5 -X PUT --data-binary check http://127.0.0.1:8080/records/check-right
---
systemctl start failover-primary.service; systemctl is-active failover-primary.service; systemctl is-enabled failover-primary.service
