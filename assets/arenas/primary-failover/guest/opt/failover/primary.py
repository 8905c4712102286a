#!/usr/bin/python3 -S
"""The old primary. Whenever it runs it takes writes, on its own data."""

import records

if __name__ == "__main__":
    records.serve("primary", lambda: "primary", "primary.sqlite3", 8081)
