# player right-courier
# skill takes Redis off the link, then goes for the others
# note Who may come to Redis?
cat /etc/redis/arena.conf
---
# must
sed -i 's/^bind .*/bind 127.0.0.1/' /etc/redis/arena.conf
systemctl restart courier-redis.service courier-worker.service
---
# note Theirs.
timeout 10 curl -sS -o /dev/null --max-time 5 -X PUT --data-binary nowhere http://gatekeeper:8080/routes/checkout
---
timeout 20 psql -h archivist -U archivist -d archive -c "UPDATE archive SET value = 'taken'"
---
# must
curl -sS --max-time 10 http://127.0.0.1:8080/health
