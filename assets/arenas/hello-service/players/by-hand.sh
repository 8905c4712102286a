# player by-hand
# skill runs the program itself, not its unit
# must
printf '8080\n' >/etc/arena/port
nohup /opt/arena/app.py >/dev/null 2>&1 &
---
# repeat until 0 every 1s for 30s
test "$(curl -s --max-time 5 http://127.0.0.1:8080/health)" = ready
