# player hasty
# skill makes the classic mistake: switches the proxy, neither promotes nor fences
# note The public port gives 502. Where does it point?
cat /var/lib/failover/upstream; curl -s --max-time 5 http://127.0.0.1:8080/health
---
# pause 1s
# note At the dead one. The replica has the data: point it there.
printf '8082\n' >/var/lib/failover/upstream
---
# pause 0.5s
curl -s --max-time 5 http://127.0.0.1:8080/health
---
# pause 2s
# note Ready again. The old primary is stopped and disabled, so that is that.
systemctl is-active failover-primary.service; systemctl is-enabled failover-primary.service
---
# pause 3s
# note Once more, to be sure.
# repeat until 0 every 1s for 20s
curl -s --max-time 5 http://127.0.0.1:8080/health | grep -q ready
