# player shut-gate
# skill shuts the whole gate, the referee out with everybody else
# must
sed -i 's|location / {|location / {\n\t\t\tallow 127.0.0.1;\n\t\t\tdeny all;|' /etc/nginx/nginx.conf
systemctl reload nginx.service
---
# note It answers here.
curl -sS --max-time 10 http://127.0.0.1:8080/health
