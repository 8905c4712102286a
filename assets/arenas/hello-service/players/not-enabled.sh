# player not-enabled
# skill starts the unit and does not think of the next boot
# must
printf '8080\n' >/etc/arena/port
systemctl start arena-app.service
---
# repeat until 0 every 1s for 30s
test "$(curl -s --max-time 5 http://127.0.0.1:8080/health)" = ready
