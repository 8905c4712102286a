#!/usr/bin/python3
"""The old primary. Whenever it runs it takes writes, on its own data."""

import records


class Primary(records.Handler):
    def role(self):
        return "primary"


if __name__ == "__main__":
    records.serve(Primary, "primary.sqlite3", 8081)
