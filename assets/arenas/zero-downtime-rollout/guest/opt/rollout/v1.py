#!/usr/bin/python3 -S
"""Version 1 of the service."""

import records

if __name__ == "__main__":
    records.serve("v1", 8081)
