#!/usr/bin/python3 -S
"""The replica. /var/lib/failover/replica.role, read on each request, says what
it is: "replica" refuses writes, "primary" takes them."""

import records
from store import state


def role():
    try:
        with open(state("replica.role"), encoding="ascii", errors="replace") as f:
            said = f.read(64).strip()
    except OSError:
        return "replica"
    return "primary" if said == "primary" else "replica"


if __name__ == "__main__":
    records.serve("replica", role, "replica.sqlite3", 8082)
