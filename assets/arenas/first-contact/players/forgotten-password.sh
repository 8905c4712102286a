# player forgotten-password
# skill gives Redis a password, and tells its own programs nothing of it
# must
echo "requirepass $(head -c 18 /dev/urandom | base64)" >>/etc/redis/arena.conf
systemctl restart courier-redis.service
---
systemctl is-active courier-redis.service courier-worker.service courier-app.service
