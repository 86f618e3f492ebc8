"""Checks the feature cache's database before diskcache opens it.

diskcache sets an attribute of its object for every row of its Settings table, and sqlite runs all
triggers and views of the database.  Therefore a database is refused if it contains anything that
diskcache does not write.  Parts may be missing, because another process may be creating it.
"""

from __future__ import annotations

import errno
import sqlite3
import stat
from collections.abc import Mapping
from contextlib import closing, suppress
from pathlib import Path

DATABASE = "cache.db"
FILES = (DATABASE, f"{DATABASE}-wal", f"{DATABASE}-shm", f"{DATABASE}-journal")
TIMEOUT_S = 2
_CHANGES = (  # how triggers update the counts in Settings
    ("count", "INSERT", "+ 1"),
    ("count", "DELETE", "- 1"),
    ("size", "INSERT", "+ NEW.size"),
    ("size", "UPDATE", "+ NEW.size - OLD.size"),
    ("size", "DELETE", "- OLD.size"),
)
_TRIGGERS = {
    f"Settings_{key}_{event.lower()}": (
        f"CREATE TRIGGER Settings_{key}_{event.lower()} AFTER {event} ON Cache FOR EACH ROW BEGIN "
        f'UPDATE Settings SET value = value {change} WHERE key = "{key}"; END'
    )
    for key, event, change in _CHANGES
}
SCHEMA: Mapping[str, str | None] = {
    "Settings": "CREATE TABLE Settings ( key TEXT NOT NULL UNIQUE, value)",
    "sqlite_autoindex_Settings_1": None,
    "Cache": "CREATE TABLE Cache ( rowid INTEGER PRIMARY KEY, key BLOB, raw INTEGER, "
    "store_time REAL, expire_time REAL, access_time REAL, access_count INTEGER DEFAULT 0, "
    "tag BLOB, size INTEGER DEFAULT 0, mode INTEGER DEFAULT 0, filename TEXT, value BLOB)",
    "Cache_key_raw": "CREATE UNIQUE INDEX Cache_key_raw ON Cache(key, raw)",
    "Cache_expire_time": "CREATE INDEX Cache_expire_time ON Cache (expire_time)",
    "Cache_store_time": "CREATE INDEX Cache_store_time ON Cache (store_time)",
    **_TRIGGERS,
}
# None: any integer of at least 0.
SETTINGS: Mapping[str, int | str | None] = {
    "statistics": 0,
    "tag_index": 0,
    "eviction_policy": "least-recently-stored",
    "size_limit": None,
    "cull_limit": 10,
    "sqlite_auto_vacuum": 1,
    "sqlite_cache_size": 8192,
    "sqlite_journal_mode": "wal",
    "sqlite_mmap_size": 2**26,
    "sqlite_synchronous": 1,
    "disk_min_file_size": 2**15,
    "disk_pickle_protocol": 5,
    "count": None,
    "size": None,
    "hits": None,
    "misses": None,
}


def check(folder: Path) -> None:
    """Raises ValueError, OSError or sqlite3.Error if this folder's database must not be opened."""
    for path in map(folder.joinpath, FILES):
        with suppress(FileNotFoundError):
            if not stat.S_ISREG(path.lstat().st_mode):
                raise OSError(errno.EINVAL, f"{path.name} is not a regular file", str(path))
    if not (folder / DATABASE).exists():
        return
    with closing(sqlite3.connect(folder / DATABASE, timeout=TIMEOUT_S)) as database:
        made = database.execute("SELECT name, sql FROM sqlite_master").fetchmany(len(SCHEMA) + 1)
        if any(item not in SCHEMA or text != SCHEMA[item] for item, text in made):
            raise ValueError("its tables are not those that StageScope writes")
        if "Settings" in dict(made):
            rows = database.execute("SELECT key, value FROM Settings").fetchmany(len(SETTINGS) + 1)
            if any(key not in SETTINGS or not _fits(value, SETTINGS[key]) for key, value in rows):
                raise ValueError("its settings are not those that StageScope writes")


def _fits(value: object, wanted: int | str | None) -> bool:
    if wanted is None:
        return isinstance(value, int) and value >= 0
    return type(value) is type(wanted) and value == wanted
