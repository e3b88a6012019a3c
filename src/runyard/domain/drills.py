"""Faults that a drill can do to a clone of a job."""

FAULTS = ("kill9", "oom", "nan", "disk", "hang", "corrupt", "server")
