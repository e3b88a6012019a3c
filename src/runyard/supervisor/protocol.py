"""Names and numbers that server, keeper and supervisor agree on. The files carry VERSION."""

VERSION = 1

# Data directory
ATTEMPTS = "attempts"
KEEPER = "keeper"
NEWS_SOCKET = "news.sock"

# Attempt folder
JOURNAL = "journal"
LOG = "out.log"
TEMPORARY = "tmp"
STOP = "stop"
PULL = "pull.json"  # how far the pull of its image is
HEARTBEAT = "hb"

# Bytes of the journal that are locked: liveness (POSIX lock), appending (OFD lock)
LIVENESS_BYTE = 0
APPEND_BYTE = 1

HEARTBEAT_S = 5.0
DEFAULT_GRACE_S = 40.0
DEFAULT_LEFTOVER_GRACE_S = 2.0
DEFAULT_KILL_TIMEOUT_S = 60.0
DEFAULT_LOG_CAP = 256 * 1024 * 1024
OOM_SCORE_ADJ = 500

MARKER = "RUNYARD_ATTEMPT_ID"
STOP_FILE = "RUNYARD_STOP_FILE"
RUN_DIR = "RUNYARD_RUN_DIR"

# At it a process that offered to writes where its threads are; as report/stack_offer.py says
STACKS_SIGNAL = 43


def service_log(name: str) -> str:
    """The file in the attempt folder that a service writes to."""
    return f"service-{name}.log"


def rank_log(rank: int) -> str:
    """The file in the attempt folder that a rank writes to; the first has the attempt's own."""
    return f"rank-{rank}.log" if rank else LOG


def stacks_file(pid: int) -> str:
    """The file in the attempt folder with which a process says that it may be sent the signal."""
    return f"stacks-{pid}.txt"


def attempt_folder(data_dir: str, attempt_id: str) -> str:
    return f"{data_dir}/{ATTEMPTS}/{attempt_id}"


def valid_attempt_id(attempt_id: str) -> bool:
    """An attempt id is a file name, never a path."""
    return (
        0 < len(attempt_id) <= 200
        and attempt_id[0] != "."
        and all(c.isalnum() or c in "-_." for c in attempt_id)
    )
