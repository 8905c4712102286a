# player right
# skill does it right after a look around
systemctl --no-pager cat arena-app.service; cat /opt/arena/app.py /etc/arena/port
---
# pause 1s
# note The wrong port, and the unit is neither started nor enabled.
# must
printf '8080\n' >/etc/arena/port
systemctl enable arena-app.service
systemctl start arena-app.service
---
# repeat until 0 every 1s for 30s
test "$(curl -s --max-time 5 http://127.0.0.1:8080/health)" = ready
