# player shut-archive
# skill lets nobody into the database over TCP, its own program neither
# must
printf 'local all all trust\n' >/etc/postgresql/15/main/pg_hba.conf
psql -U postgres -c 'SELECT pg_reload_conf()'
---
# note The row is there.
psql -U archivist -d archive -c 'SELECT * FROM archive'
