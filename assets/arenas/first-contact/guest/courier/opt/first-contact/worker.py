#!/usr/bin/python3
"""Writes the letter anew each second; it lives for five."""

import sys
import time

import resp

while True:
    try:
        resp.ask("SET", "courier:letter", "ok", "EX", "5")
    except resp.Refused as e:
        print(e, file=sys.stderr, flush=True)
    time.sleep(1)
