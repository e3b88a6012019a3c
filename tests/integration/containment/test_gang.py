"""Several ranks of one attempt below one supervisor: all or none, one end record, nobody left."""

import os
import signal

import pytest
from keeper_yard import Alive, wait_for

from runyard.supervisor import process_table, rank_records, reconcile

FOR_EVER = "while :; do sleep 0.05; done"


class GangYard:
    """Starts ranks that each run a piece of shell of their own."""

    def __init__(self, yard):
        self.yard = yard
        self.alive = Alive(yard.data_dir, "alive")

    def start(self, *scripts, **fields):
        """Every rank holds the FIFO open; `$RANK` chooses what it runs."""
        cases = " ".join(f"{rank}) {script};;" for rank, script in enumerate(scripts))
        command = f"exec 9>{self.alive.path}; echo rank $RANK begins; case $RANK in {cases} esac"
        fields = {"gang_grace_s": 5.0, "finish_skew_s": 600.0, **fields}
        attempt_id = self.yard.prepare(
            ["/bin/sh", "-c", command], ranks=ranks_of(len(scripts)), **fields
        )
        self.yard.keeper.run(attempt_id)
        return attempt_id

    def end(self, attempt_id):
        end = self.yard.wait_end(attempt_id)
        self.alive.wait_all_dead()
        return end

    def log(self, attempt_id, rank):
        name = f"rank-{rank}.log" if rank else "out.log"
        with open(f"{self.yard.folder(attempt_id)}/{name}") as file:
            return file.read()

    def wait_line(self, attempt_id, rank, text):
        def there():
            try:
                return text in self.log(attempt_id, rank)
            except FileNotFoundError:
                return False

        wait_for(there, f"{text!r} of rank {rank}")


def ranks_of(count):
    return [
        {"rank": rank, "local_rank": rank, "env": {"RANK": str(rank), "LOCAL_RANK": str(rank)}}
        for rank in range(count)
    ]


def exits(end):
    return [(one["rank"], one["code"], one["signal"]) for one in end["ranks"]]


@pytest.fixture
def gang(yard):
    return GangYard(yard)


def test_all_ranks_run_and_end_as_one(gang):
    """R30: every rank has its own environment, log and recorded end."""
    attempt = gang.start("exit 0", "exit 0", "exit 0", "exit 0")
    end = gang.end(attempt)
    assert (end["code"], end["signal"], end["cause"]) == (0, None, "exited")
    assert exits(end) == [(rank, 0, None) for rank in range(4)]
    assert "rank" not in end
    assert [gang.log(attempt, rank) for rank in range(4)] == [
        f"rank {rank} begins\n" for rank in range(4)
    ]
    kinds = [record["kind"] for record in gang.yard.journal(attempt).records]
    assert kinds == ["spec", "supervisor", *["job"] * 4, *["main_exit"] * 4, "exit"]


def test_identities_of_all_are_recorded_before_any_runs(gang):
    """R41: killed right after the records, nothing of the user's has run."""
    attempt = gang.start("echo ran", "echo ran", testing={"die_after": "job_record"})
    end = gang.yard.wait_end(attempt)
    assert (end["code"], end["cause"], end["by"]) == (None, "supervisor_lost", "keeper")
    assert not os.path.exists(f"{gang.yard.folder(attempt)}/out.log")
    assert len(gang.yard.journal(attempt).records) >= 4


def test_a_program_that_cannot_run_leaves_no_rank(yard):
    ranks = ranks_of(3)
    attempt = yard.start(["/no/such/program"], ranks=ranks)
    end = yard.wait_end(attempt)
    assert (end["cause"], end["rank"], end["started_at"]) == ("exec_failed", 0, None)


def test_one_that_cannot_run_takes_the_others_with_it(gang):
    """All or none: the second rank finds no log it could write."""
    yard = gang.yard
    command = f"exec 9>{gang.alive.path}; {FOR_EVER}"
    attempt = yard.prepare(["/bin/sh", "-c", command], ranks=ranks_of(3))
    os.mkdir(f"{yard.folder(attempt)}/rank-1.log")
    yard.keeper.run(attempt)
    end = gang.end(attempt)
    assert (end["cause"], end["rank"], end["code"]) == ("start_failed", 1, None)
    os.rmdir(f"{yard.folder(attempt)}/rank-1.log")


def test_the_first_that_fails_is_named_and_ends_the_others(gang):
    """R30: code and rank of the first failure; the others have the gang grace."""
    attempt = gang.start(FOR_EVER, "exit 3", FOR_EVER, gang_grace_s=0.2)
    end = gang.end(attempt)
    assert (end["code"], end["signal"], end["cause"], end["rank"]) == (3, None, "exited", 1)
    assert exits(end) == [(0, None, 15), (1, 3, None), (2, None, 15)]
    assert end["stop"] is None
    told = gang.yard.hear(attempt, "stopping")
    assert (told["cause"], told["grace_s"] <= 0.2) == ("rank_failed", True)


def test_others_may_fail_by_themselves_within_the_grace(gang):
    """Their last lines are seen, and the root cause stays the first."""
    late = "sleep 0.5; echo connection reset by peer; exit 1"
    attempt = gang.start(late, "exit 7", gang_grace_s=30)
    end = gang.end(attempt)
    assert (end["code"], end["rank"]) == (7, 1)
    assert exits(end) == [(0, 1, None), (1, 7, None)]
    assert "connection reset" in gang.log(attempt, 0)
    assert end["signals"] == []


def test_those_that_ignore_the_end_of_the_gang_are_killed(gang):
    deaf = f"{gang.yard.data_dir}/deaf"
    attempt = gang.start(
        f"trap '' TERM; touch {deaf}; {FOR_EVER}",
        f"while [ ! -e {deaf} ]; do sleep 0.02; done; exit 4",
        gang_grace_s=0,
    )
    end = gang.end(attempt)
    assert (end["code"], end["rank"]) == (4, 1)
    assert exits(end)[0] == (0, None, 9)


def test_a_rank_that_lags_behind_fails_the_attempt(gang):
    """R30: one has finished, another never does."""
    attempt = gang.start("exit 0", FOR_EVER, finish_skew_s=0.3)
    end = gang.end(attempt)
    assert (end["cause"], end["rank"], end["signal"]) == ("rank_lagged", 1, 15)
    assert exits(end) == [(0, 0, None), (1, None, 15)]


def test_ranks_may_end_one_after_the_other(gang):
    attempt = gang.start("exit 0", "sleep 0.5; exit 0", "sleep 0.2; exit 0")
    end = gang.end(attempt)
    assert (end["code"], end["cause"]) == (0, "exited")


def test_a_killed_rank_is_the_root_cause(gang):
    attempt = gang.start(FOR_EVER, FOR_EVER, gang_grace_s=0.2)
    pids = wait_for(lambda: mains(gang.yard, attempt, 2), "both ranks")
    gang.wait_line(attempt, 1, "begins")
    os.kill(pids[1], signal.SIGKILL)
    end = gang.end(attempt)
    assert (end["code"], end["signal"], end["cause"]) == (None, 9, "killed_externally")
    assert end["rank"] == 1


def test_cancel_ends_all_ranks_and_what_they_started(gang):
    """R41: also what went into sessions of its own; the receipt counts all of them."""
    apart = "setsid sh -c 'echo apart; exec sleep 600' &"
    script = f"{apart} trap 'exit 5' TERM; echo stands; {FOR_EVER}"
    attempt = gang.start(script, script, script)
    for rank in range(3):
        gang.wait_line(attempt, rank, "stands")
        gang.wait_line(attempt, rank, "apart")
    gang.yard.stop(attempt)
    end = gang.end(attempt)
    assert (end["cause"], end["proof"]) == ("cancelled", "echild")
    assert exits(end) == [(rank, 5, None) for rank in range(3)]
    assert end["processes_ended"] >= 6
    assert "rank" not in end


def test_force_kill_ends_ranks_that_hear_nothing(gang):
    deaf = f"trap '' TERM; echo deaf; {FOR_EVER}"
    attempt = gang.start(deaf, deaf)
    for rank in range(2):
        gang.wait_line(attempt, rank, "deaf")
    gang.yard.stop(attempt, grace_s=0.0)
    end = gang.end(attempt)
    assert exits(end) == [(0, None, 9), (1, None, 9)]
    assert end["cause"] == "cancelled"


def test_the_supervisor_killed_leaves_no_rank(gang):
    """R42: the keeper ends all ranks; no code is invented."""
    attempt = gang.start(FOR_EVER, FOR_EVER, "exit 0")
    for rank in range(3):
        gang.wait_line(attempt, rank, "begins")
    wait_for(lambda: rank_records.exits(gang.yard.journal(attempt)), "the end of rank 2")
    os.kill(gang.yard.supervisor_pid(attempt), signal.SIGKILL)
    end = gang.end(attempt)
    assert (end["code"], end["cause"], end["by"]) == (None, "supervisor_lost", "keeper")
    assert exits(end) == [(0, None, 9), (1, None, 9), (2, 0, None)]
    assert "rank" not in end


def test_a_failure_on_record_outlives_the_supervisor(gang):
    """R42: rank 1 failed, then the supervisor died within the gang grace."""
    attempt = gang.start(FOR_EVER, "exit 6", gang_grace_s=60)
    wait_for(lambda: rank_records.exits(gang.yard.journal(attempt)), "the end of rank 1")
    os.kill(gang.yard.supervisor_pid(attempt), signal.SIGKILL)
    end = gang.end(attempt)
    assert (end["code"], end["cause"], end["rank"], end["by"]) == (6, "exited", 1, "keeper")


def test_supervisor_and_keeper_killed_leave_no_rank(gang):
    """R42: whoever looks next ends what is left and writes the record."""
    yard = gang.yard
    attempt = gang.start(FOR_EVER, FOR_EVER)
    gang.wait_line(attempt, 1, "begins")
    keeper, supervisor = yard.keeper_pid(), yard.supervisor_pid(attempt)
    os.kill(keeper, signal.SIGKILL)
    os.kill(supervisor, signal.SIGKILL)
    wait_for(lambda: not process_table.alive(supervisor), "the supervisor's death")
    reconcile.settle(yard.folder(attempt))
    end = gang.end(attempt)
    assert (end["code"], end["cause"], end["by"]) == (None, "supervisor_lost", "reconciler")
    assert exits(end) == [(0, None, None), (1, None, None)]


def test_time_limit_of_a_gang(gang):
    attempt = gang.start(FOR_EVER, FOR_EVER, timeout_s=0.5)
    end = gang.end(attempt)
    assert (end["cause"], end["limit_s"]) == ("timeout", 0.5)
    assert "rank" not in end


def test_every_log_of_a_gang_is_bounded(gang):
    """The cap holds for each of them."""
    flood = "head -c 8000000 /dev/zero | tr '\\0' x; echo done; sleep 600"
    attempt = gang.start(flood, flood, log_cap_bytes=2_000_000)
    folder = gang.yard.folder(attempt)
    for rank in range(2):
        gang.wait_line(attempt, rank, "done")
    names = ("out.log", "rank-1.log")
    wait_for(
        lambda: all(os.stat(f"{folder}/{name}").st_blocks * 512 <= 2_000_000 for name in names),
        "both logs to shrink",
    )
    gang.yard.stop(attempt)
    gang.end(attempt)


def mains(yard, attempt, count):
    records = [one for one in yard.journal(attempt).records if one["kind"] == "job"]
    return [one["pid"] for one in records] if len(records) == count else None
