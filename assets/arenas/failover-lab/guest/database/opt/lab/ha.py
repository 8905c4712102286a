"""Debian's Patroni, but for one check.

Patroni takes a postmaster whose start it knows by another wall clock for somebody
else's process. Here the wall clock jumps once, when the prepared machine is resumed,
and what Patroni remembers of the boot's time is from before.
"""

from patroni.__main__ import main
from patroni.postgresql.postmaster import PostmasterProcess

read = PostmasterProcess._read_postmaster_pidfile
PostmasterProcess._read_postmaster_pidfile = staticmethod(lambda folder: dict(read(folder), start_time=0))

if __name__ == "__main__":
    main()
