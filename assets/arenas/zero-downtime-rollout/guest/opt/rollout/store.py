"""Where records are kept."""

import os
import sqlite3

STATE = os.environ.get("ROLLOUT_STATE", "/var/lib/rollout")


def state(name):
    return os.path.join(STATE, name)


class closing:
    """contextlib's, which takes longer to load than all of this."""

    def __init__(self, db):
        self.db = db

    def __enter__(self):
        return self.db

    def __exit__(self, *_):
        self.db.close()


class Store:
    """Records in one SQLite file. A write that returned survives a power cut."""

    def __init__(self, path):
        self.path = path
        with closing(self._open()) as db:
            db.execute("CREATE TABLE IF NOT EXISTS records (id TEXT PRIMARY KEY, value BLOB NOT NULL)")

    def _open(self):
        db = sqlite3.connect(self.path, timeout=5, isolation_level=None)
        # EXTRA is FULL, plus a sync of the folder once the journal is gone.
        db.execute("PRAGMA synchronous=EXTRA")
        return db

    def get(self, record):
        with closing(self._open()) as db:
            row = db.execute("SELECT value FROM records WHERE id = ?", (record,)).fetchone()
        return None if row is None else bytes(row[0])

    def put(self, record, value):
        with closing(self._open()) as db:
            db.execute("INSERT OR REPLACE INTO records VALUES (?, ?)", (record, value))

    def delete(self, record):
        with closing(self._open()) as db:
            db.execute("DELETE FROM records WHERE id = ?", (record,))

    def replace_all(self, records):
        with closing(self._open()) as db:
            db.execute("BEGIN IMMEDIATE")
            db.execute("DELETE FROM records")
            db.executemany("INSERT INTO records VALUES (?, ?)", records)
            db.execute("COMMIT")
