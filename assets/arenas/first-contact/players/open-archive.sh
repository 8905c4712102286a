# player open-archive
# skill makes a copy of the table, and leaves the door open
psql -U archivist -d archive -c 'CREATE TABLE copy AS SELECT * FROM archive'
---
# pause 2s
psql -U archivist -d archive -c 'SELECT * FROM copy'
