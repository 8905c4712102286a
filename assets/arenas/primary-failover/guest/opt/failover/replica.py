#!/usr/bin/python3
"""The replica. /var/lib/failover/replica.role, read on each request, says what
it is: "replica" refuses writes, "primary" takes them."""

import records
from store import state


class Replica(records.Handler):
    def role(self):
        try:
            with open(state("replica.role"), encoding="ascii", errors="replace") as f:
                role = f.read(64).strip()
        except OSError:
            return "replica"
        return "primary" if role == "primary" else "replica"


if __name__ == "__main__":
    records.serve(Replica, "replica.sqlite3", 8082)
