# player open-gate
# skill looks whether all is well, and goes
curl -sS --max-time 10 http://127.0.0.1:8080/health; cat /var/lib/gatekeeper/route
---
# pause 2s
systemctl is-active nginx.service gatekeeper-app.service
