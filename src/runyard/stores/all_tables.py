"""The whole schema: the set that every table belongs to, with all of them in it."""

from __future__ import annotations

from runyard.stores import login_tables, repair_tables, tables, watch_tables

PARTS = (tables, watch_tables, repair_tables, login_tables)
metadata = tables.metadata
