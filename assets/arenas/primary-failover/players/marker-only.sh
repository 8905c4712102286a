# player marker-only
# skill promotes and switches, and fences with a marker file that nothing heeds
# must
touch /var/lib/failover/primary.fenced
printf 'primary\n' >/var/lib/failover/replica.role
printf '8082\n' >/var/lib/failover/upstream
sync
---
# repeat until 0 every 1s for 30s
test "$(curl -s --max-time 5 http://127.0.0.1:8080/role)" = primary
