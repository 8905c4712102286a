# player longer-queue
# skill lets more requests wait, for the one that serves them
# must
sed -i 's/listen(64)/listen(1024)/' /opt/traffic-surge/wire.py
sync
systemctl restart traffic-surge.service
---
# repeat until 0 every 1s for 60s
test "$(curl -s --max-time 5 http://127.0.0.1:8080/health)" = ready
