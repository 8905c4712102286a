# player right-gatekeeper
# skill shuts the routes' door to the link, then goes for the others
# note Who may change the route?
cat /etc/nginx/nginx.conf; cat /var/lib/gatekeeper/route
---
# must
sed -i 's|location / {|location /routes/ {\n\t\t\tallow 127.0.0.1;\n\t\t\tdeny all;\n\t\t\tproxy_pass http://127.0.0.1:9000;\n\t\t}\n\t\tlocation / {|' /etc/nginx/nginx.conf
nginx -t
systemctl reload nginx.service
---
# must
echo checkout >/var/lib/gatekeeper/route
---
# note Theirs.
timeout 20 psql -h archivist -U archivist -d archive -c "UPDATE archive SET value = 'taken'"
---
timeout 10 redis-cli -h courier CONFIG SET requirepass $(head -c 12 /dev/urandom | base64 | tr -dc a-z0-9)
---
# note And once more: was it in time?
# must
echo checkout >/var/lib/gatekeeper/route; curl -sS --max-time 10 http://127.0.0.1:8080/health
