# player revived
# skill starts the dead primary again, since that is quickest
# note Why is it down?
systemctl --no-pager status database.service
---
# pause 15s
# note Its data is sound. It recovers by itself.
# must
systemctl reset-failed database.service
systemctl enable --now database.service
---
# repeat until 0 every 1s for 60s
curl -s --max-time 5 http://127.0.0.1:8080/health | grep -q ready
