# player wrong-port
# skill starts and enables the unit, and never looks where it listens
# must
systemctl enable arena-app.service
systemctl start arena-app.service
---
# pause 2s
systemctl is-active arena-app.service
