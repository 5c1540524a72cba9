"""What the commands of the skills must say of recordings of programs with a known fault: those of
tests/cases, and of tests/e2e/diff_uv, fast and slow; and of traces of Go and of
dial9 that are in the tree."""
import os
import re
import subprocess
import sys

from libskills import lines, output, values
from librun import BIN, said

sys.path.append(os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "cases"))
from libtable import FAULTS  # noqa: E402

CASES = {case.name: case for case in FAULTS}
TRACE_ID = "4bf92f3577b34da6%016x"  # of api_downstream's tasks


class Answer:
    """What a command says of a recording: by field, a value, or a function of the first value that
    is true; `holds` is one of all its output."""

    def __init__(self, trace, fields=None, holds=None, status=0, words=None):
        self.trace, self.fields, self.holds = trace, fields or {}, holds
        self.status = status
        self.words = words or (lambda traces: {})

    def needs(self):
        return [name for name in self.trace.split("+")]

    def wrong(self, recipe, traces):
        """(what is wrong, the output)"""
        paths = [traces.get(name) for name in self.needs()]
        words = {"TRACE": paths[0]} if len(paths) == 1 else dict(zip(("BEFORE", "AFTER"), paths))
        words.update(self.words(traces))
        p = recipe.run(words, traces.base)
        if p.returncode != self.status:
            return said(p)[:600], None
        got = output(p.stdout)
        for field, expected in self.fields.items():
            try:
                value = values(got, field)[0]
            except KeyError:
                return f"{field} is not there: {p.stdout[:300]}", got
            if not (expected(value) if callable(expected) else value == expected):
                return f"{field} is {value!r}", got
        if self.holds and not self.holds(got):
            return f"it printed {p.stdout[:500]}", got
        return "", got


def at_fault(case, where="findings[0].where[0]"):
    """Fields that name the planted line."""
    return {where + ".function": CASES[case].function,
            where + ".line": lambda line: line in CASES[case].lines()}


def found(case, **more):
    """What a report must find first."""
    fields = {"findings[0].rule": CASES[case].rule}
    if CASES[case].function:
        fields.update(at_fault(case))
    fields.update(more)
    return Answer(case, fields)


def line_of(case):
    return lambda line: line in CASES[case].lines()


def above(least):
    return lambda value: value is not None and value > least


def has(text):
    return lambda value: text in (value or "")


def largest(got, subject=0):
    """Of the pieces that add up."""
    pieces = [p for p in got["subjects"][subject]["pieces"] if p["depth"] == 0]
    assert sum(p["ns"] for p in pieces) == got["subjects"][subject]["ns"]
    return max(pieces, key=lambda p: p["ns"])


def went_to(owner, case=None):
    def holds(got):
        piece = largest(got)
        where = piece["where"][0] if piece["where"] else {}
        return piece["owner"] == owner and (not case or (where["function"] == CASES[case].function and
                                                         where["line"] in CASES[case].lines()))
    return holds


def waited_for_compact(got):
    """What was woken waited for code of another callback."""
    other = [p for s in got["subjects"] for p in s["pieces"] if not p["own"] and p["owner"] == "code"]
    return max(other, key=lambda p: p["ns"])["where"][0]["function"] in ("compact", "compact_table")


def any_row(**wanted):
    """Some row has all of these."""
    return lambda got: any(all(test(row[key]) if callable(test) else row[key] == test
                               for key, test in wanted.items()) for row in lines(got))


def evidence_moment(traces):
    """As the skill says: from the evidence, seconds since the trace began."""
    report = output(subprocess.run([BIN, "report", "--json", traces.get("uv_sleep")],
                                   capture_output=True, text=True).stdout)
    longest = report["findings"][0]["evidence"][0]
    begin, end = (longest[key] - report["trace"]["from_ns"] for key in ("from_ns", "to_ns"))
    return {"BEGIN": f"{begin}ns", "END": f"{end}ns"}


def a_trace_id(traces):
    return {"TRACE_ID": TRACE_ID % 20}


def stuck_task(traces):
    """The number that the command before gives."""
    p = subprocess.run([BIN, "sql", "--json", traces.get("api_lost_wake"),
                        "SELECT task FROM tasks WHERE end_ns IS NULL AND kind = 'fetch'"],
                       capture_output=True, text=True)
    return {"TASK": str(output(p.stdout)["task"])}


def changed(got):
    """What was made slower, and by how much."""
    rows = {row["name"]: row for row in got["rows"]}
    row = rows["uv_timer: on_parse (diff_uv.c)"]
    return row["change"] == "slower" and 2 < row["ratio"] < 4


def locks_in_a_circle(got):
    """Following the owners of locks, as the skill says, a thread comes again."""
    threads = {t["tid"]: t for t in got["processes"][0]["threads_at_end"]}
    tid = next(t for t in threads if threads[t]["waits"] == "lock")
    seen = []
    while tid in threads and threads[tid]["waits"] == "lock" and tid not in seen:
        seen.append(tid)
        tid = threads[tid]["owner"]
    return tid in seen and len(seen) == 2


# By skill and title: for each command below the title, its answers.
TABLE = {
    "tacho-triage": {
        "1. What is it a trace of, and is it whole?": [[
            Answer("uv_sleep", {"processes[].program": "case-uv_sleep", "missing_records": 0,
                                "processes[].end.text": has("ended by itself"),
                                "window_ns": above(10**9), "event_count": above(500)}),
            Answer("uv_crash", {"processes[].end.text": has("killed by SIGSEGV")})]],
        "2. What does the report find?": [[
            found(name, **{"verdict.category": category}) for name, category in (
                ("uv_sleep", "blocked-loop"), ("guess", "lock"), ("uv_long_callback", "blocked-loop"),
                ("uv_pool", "pool"), ("uv_crash", "crash"), ("epoll_deadlock", "hang"),
                ("api_downstream", "downstream"), ("api_lost_wake", "stuck"), ("api_leak", "leak"))]
            + [Answer("epoll_sched", {"verdict.category": "scheduling"}),
               Answer("healthy_idle", {"verdict.category": "none"}),
               Answer("uv_tiny", {"verdict.category": "not-enough-data"})]],
        "3. Does the ledger agree?": [[
            Answer("uv_sleep", {"ledger.owners[0].owner": "call", "ledger.owners[0].key": "usleep",
                                "ledger.owners[0].place.function": "retry_later",
                                "ledger.owners[0].waiting_ns": above(50 * 10**6)},
                   lambda got: got["ledger"]["owners"][0]["waiting_ns"] <= got["ledger"]["waiting_ns"]),
            Answer("guess", {"ledger.owners[0].owner": "lock",
                             "ledger.owners[0].place.function": "send_report"})]],
        "4. What happened in the worst case?": [
            [Answer("uv_sleep", {"subjects[0].name": has("on_retry")}, went_to("call", "uv_sleep")),
             Answer("uv_long_callback", {}, went_to("code", "uv_long_callback"))],
            [Answer("uv_sleep", {"[0].thread_name": "case-uv_sleep"}, words=evidence_moment,
                    holds=lambda got: any(e["type"] == "call" for e in lines(got)))]],
        "5. What is not known?": [[
            Answer("uv_sleep", {"coverage": lambda c: not c["pool-exhausted"]["checked"] and
                                c["pool-exhausted"]["why"] and c["blocking-call"]["checked"],
                                "losses.missing_records": 0, "considered[].reason": bool}),
            Answer("epoll_deadlock", {"absent": lambda a: a[0]["text"]})]],
    },
    "tacho-latency": {
        "Which are slow?": [[
            Answer("api_downstream", {"spans[0].name": "query_database",
                                      "spans[0].p50_ns": above(150 * 10**6),
                                      "loops[0].utilisation": lambda u: u < 0.5}),
            Answer("uv_sleep", {"polls[0].name": has("on_retry"), "polls[0].p99_ns": above(5 * 10**7)},
                   lambda got: got["spans"] == [])]],
        "Where did the time of the slowest go?": [[
            Answer("api_downstream", {"subjects[0].name": "query_database",
                                      "subjects[0].ns": above(180 * 10**6)},
                   went_to("waiting for I/O"), words=lambda traces: {"SPAN": "query_database"})],
            [Answer("uv_sleep", {"subjects[0].name": has("on_retry")}, went_to("call", "uv_sleep")),
             Answer("api_long_poll", {"subjects[0].ns": above(40 * 10**6)}, waited_for_compact)]],
        "One request of which the trace id is known": [
            [Answer("api_downstream", {"subjects[0].type": "span"}, lambda got:
                    len(got["subjects"]) == 1 and largest(got)["owner"] == "waiting for I/O",
                    words=a_trace_id),
             Answer("api_downstream", {}, lambda got: got["subjects"] == [], status=1,
                    words=lambda traces: {"TRACE_ID": "0123456789abcdef0123456789abcdef"})],
            [Answer("api_downstream", {"[0].name": "query_database",
                                       "[0].trace_id": lambda t: t.startswith(TRACE_ID[:16]),
                                       "[0].ns": above(180 * 10**6)})]],
        "Is it the outside, or is it us?": [[
            Answer("api_downstream", {"[0].loop": "server", "[0].busy_percent": lambda p: p < 50})]],
        "What ran while woken tasks waited?": [[
            Answer("api_long_poll", {"[0].waiting": "tick", "[0].instead": "compact"},
                   lambda got: 2 * lines(got)[0]["for_ns"] > lines(got)[0]["waited_ns"]),
            Answer("epoll_deadlock", {}, lambda got: lines(got) == [])]],
    },
    "tacho-locks": {
        "What does the report say?": [[
            found("guess", **{"coverage.lock-contention.checked": True}), found("uv_lock")]],
        "Which locks cost most, and who holds them?": [[
            Answer("guess", {"[0].wait_function": "on_guess", "[0].release_function": "send_report",
                             "[0].release_line": line_of("guess"), "[0].longest_ns": above(5 * 10**7)}),
            Answer("uv_lock", {"[0].wait_function": "on_lookup", "[0].release_function": "flush_cache",
                               "[0].release_line": line_of("uv_lock")})]],
        "What did the holder do meanwhile?": [[
            Answer("uv_lock", {}, lambda got: largest(got)["owner"] == "lock" and
                   "held by" in largest(got)["text"] and
                   largest(got)["where"][0]["function"] == "flush_cache" and
                   any(p["depth"] > 0 for p in got["subjects"][0]["pieces"]))]],
        "Condition variables and semaphores": [[
            Answer("event_condition", {"[0].wait_function": "ask_and_wait",
                                       "[0].wait_line": line_of("event_condition")}),
            Answer("uv_sleep", {}, lambda got: lines(got) == [])]],
    },
    "tacho-blocking": {
        "What does the report say?": [[
            found("uv_sleep", **{"findings[0].summary": has("usleep"), "findings[0].loop": "uv loop",
                                 "coverage.blocking-call.checked": True}),
            found("event_fsync", **{"findings[0].summary": has("fsync")})]],
        "All calls, by caller": [[
            Answer("uv_sleep", {"[0].name": "usleep", "[0].caller": "retry_later",
                                "[0].caller_line": line_of("uv_sleep"),
                                "[0].longest_ns": above(55 * 10**6)}),
            Answer("uv_resolve", {"[0].name": "getaddrinfo", "[0].caller": "connect_to"})]],
        "What waited because of them?": [[
            Answer("uv_sleep", {"[0].name": "usleep", "[0].function": "retry_later",
                                "[0].waiting_ns": above(50 * 10**6), "[0].count": above(2)})]],
        "The whole stack of one call": [[
            Answer("uv_sleep", {}, lambda got: [f["function"] for f in got if f["function"] in (
                "retry_later", "on_retry", "main")] == ["retry_later", "on_retry", "main"])]],
    },
    "tacho-cpu": {
        "What does the report say?": [[
            found("uv_long_callback", **{"coverage.long-callback.checked": True,
                                         "findings[0].names": lambda names: names is None})]],
        "Which functions had the CPU?": [[
            Answer("uv_long_callback", {"[0].in_function": "parse_document", "[0].samples": above(10),
                                        "[0].cpu_ns": above(10**8)})]],
        "Which callbacks are long, and did they run?": [[
            Answer("uv_long_callback", {"[0].function": "on_request", "[0].longest_ns": above(10**7)},
                   lambda got: 2 * lines(got)[0]["sampled_ns"] > lines(got)[0]["ns"]),
            Answer("uv_sleep", {"[0].function": "on_retry"},
                   lambda got: 2 * lines(got)[0]["call_ns"] > lines(got)[0]["ns"])]],
        "The stacks in one callback": [[
            Answer("uv_long_callback", {}, lambda got: re.match(
                r"\S.*;on_request;parse_document \d+\n", got),
                words=lambda traces: {"KIND": "on_request"})]],
        "How full are the loops?": [[
            Answer("uv_saturated", {"[0].loop": "uv loop", "[0].busy_percent": above(90)}),
            Answer("healthy_idle", {"[0].busy_percent": lambda p: p < 50})]],
    },
    "tacho-scheduling": {
        "What does the report say?": [[
            Answer("epoll_sched", {"findings[0].rule": "kernel-scheduling-delay",
                                   "coverage.kernel-scheduling-delay.checked": True},
                   lambda got: got["findings"][0]["where"] == []),
            found("epoll_stopped", **{"findings[0].summary": has("stopped by a signal")})]],
        "How much of each thread's time is it?": [[
            Answer("epoll_sched", {"[0].owner": lambda o: o in ("descheduled", "late"),
                                   "[0].percent": above(10)}),
            Answer("epoll_stopped", {"[0].owner": "stopped", "[0].name": "by a signal",
                                     "[0].longest_ns": above(250 * 10**6)})]],
        "Which callbacks did it hit?": [[
            Answer("epoll_sched", {"[0].delay_ns": above(0), "[0].polls": above(0)})]],
        "Who had the CPUs?": [
            [Answer("epoll_sched", {"[0].thread": has("case-epoll"), "[0].code_percent": above(1)})],
            [Answer("epoll_sched", {"[0].cpus": lambda n: n == 1})]],
    },
    "tacho-pools": {
        "What does the report say?": [[
            found("uv_pool", **{"coverage.pool-exhausted.checked": True}),
            Answer("uv_sleep", {"coverage.pool-exhausted.checked": False})]],
        "Which work takes the threads, and which waits?": [[
            Answer("uv_pool", {"[0].function": "make_thumbnail", "[0].submit_function": "on_upload"},
                   lambda got: max(got, key=lambda r: r["longest_wait_ns"])["function"] in (
                       "run_query", "make_thumbnail") and any_row(
                           function="run_query", longest_wait_ns=above(10**7))(got))]],
        "Does it compute, or does it wait?": [[
            Answer("uv_pool", {"[0].owner": "call", "[0].name": "usleep",
                               "[0].function": "make_thumbnail"})]],
    },
    "tacho-tasks": {
        "What does the report say?": [[
            found("api_lost_wake", **{"coverage.stuck-task.checked": True}), found("api_leak")]],
        "Which tasks are alive, and what do they wait for?": [[
            Answer("api_leak", {"[0].kind": "session", "[0].spawn_function": "accept_more",
                                "[0].alive": above(100)}),
            Answer("api_lost_wake", {}, any_row(kind="fetch", waits_for="data of the backend",
                                                alive=1)),
            Answer("epoll_deadlock", {}, lambda got: lines(got) == [])]],
        "Which task was idle for longest?": [
            [Answer("api_lost_wake", {"[0].kind": "fetch", "[0].waits_for": "data of the backend",
                                      "[0].idle_ns": above(10**9), "[0].woken_and_not_run": 0})],
            [Answer("api_lost_wake", {"[].function": "wait_for_data", "[].line": line_of(
                "api_lost_wake")}, words=stuck_task)]],
        "Who wakes whom?": [[
            Answer("api_self_wake", {"[0].waker": lambda w: w != "(no task)"},
                   lambda got: 2 * lines(got)[0]["by_itself"] > lines(got)[0]["wakes"] and
                   lines(got)[0]["waker"] == lines(got)[0]["woken"]),
            Answer("api_wake_storm", {}, lambda got: any(
                row["for_nothing"] > row["wakes"] for row in lines(got)))]],
        "Do queues grow?": [[
            Answer("api_queue_growth", {"[0].most": above(50)}),
            Answer("uv_sleep", {}, lambda got: lines(got) == [])]],
    },
    "tacho-ends": {
        "How did it end?": [[
            found("uv_crash", **{"trace.end.how": "killed", "trace.end.signal": "SIGSEGV",
                                 "verdict.category": "crash"}),
            found("epoll_deadlock", **{"trace.end.signal": "SIGKILL", "verdict.category": "hang",
                                       "trace.end.out_of_memory": False}),
            Answer("epoll_hang", {"findings[0].rule": "hang", "findings[0].summary": has("read")}),
            Answer("uv_sleep", {"trace.end.how": "exited"})]],
        "What was each thread in?": [[
            Answer("epoll_deadlock", {}, locks_in_a_circle),
            Answer("epoll_hang", {}, lambda got: any(
                t["waits"] == "call" and t["call"] == "read" and t["waits_at"]["function"] == "main" and
                not t["idle"] for t in got["processes"][0]["threads_at_end"])),
            Answer("uv_crash", {"processes[0].threads_at_end[].signal": 11})]],
        "What came just before?": [[
            Answer("uv_crash", {}, lambda got: lines(got)[-1]["type"] == "poll-begin" and
                   lines(got)[-1]["kind"]["code"]["function"] == "on_tick"),
            Answer("epoll_deadlock", {}, lambda got: lines(got))]],
    },
    "tacho-compare": {
        "Which callbacks or spans got slower?": [
            [Answer("fast+slow", {"compared": above(3)}, changed),
             Answer("uv_tiny+uv_tiny", {"compared": 0})],
            [Answer("fast+slow", {}, lambda got: has("slower: uv_timer: on_parse")(got), status=1),
             Answer("fast+fast", {}, lambda got: got.startswith("no change"))]],
        "Is the load the same?": [[
            Answer("fast+slow", {}, lambda got: 0.5 < got["a"]["polls"] / got["a"]["window_ns"] /
                   (got["b"]["polls"] / got["b"]["window_ns"]) < 2)]],
        "Did the owners of time change?": [
            [Answer("fast+slow", {}, lambda got: 99 < sum(values(got, "[].percent")) < 101)],
            [Answer("uv_lock+guess", {}, any_row(owner="lock", percent=above(5)))]],
    },
    "tacho-sql": {
        "What is there?": [
            [Answer("uv_sleep", {}, lambda got: {"polls", "ledger", "frames"} <= set(got.split()))],
            [Answer("uv_sleep", {}, lambda got: "call_ns" in got.split())]],
        "Rules": [
            [Answer("uv_sleep", {"[0].polls": above(100), "[0].calls": above(2), "[0].spans": 0}),
             Answer("api_downstream", {"[0].tasks": above(50), "[0].wakes": above(50),
                                       "[0].spans": above(50)})],
            [Answer("uv_sleep", {}, lambda got: lines(got) == []),
             Answer("cut", {}, any_row(what="problem"))]],
        "The slowest callbacks, and what they did": [[
            Answer("uv_sleep", {"[0].function": "on_retry", "[0].ns": above(55 * 10**6),
                                "[0].call_ns": above(55 * 10**6)}),
            Answer("uv_lock", {"[0].function": "on_lookup", "[0].lock_ns": above(30 * 10**6)})]],
        "Calls inside of callbacks": [[
            Answer("uv_sleep", {"[0].function": "on_retry", "[0].name": "usleep",
                                "[0].caller": "retry_later", "[0].percent_of_poll": above(90)})]],
        "How a number goes over time": [[
            Answer("uv_sleep", {"[].tenth": 0}, lambda got: max(
                values(got, "[].longest_ns")) > 55 * 10**6 and len(got) > 10)]],
        "Who had the time": [[
            Answer("uv_sleep", {"[0].owner": "call", "[0].name": "usleep",
                                "[0].function": "retry_later"})]],
    },
    "tacho-imported": {
        "Whose trace is it?": [[
            Answer("go1.25", {"processes[0].imported": has("a Go 1.25 execution trace"),
                              "processes[0].taken_by": "import", "missing_records": 0,
                              "processes[0].events": lambda e: e["wake"] > 100 and "lock-wait" not in e}),
            Answer("dial9", {"processes[0].imported": has("dial9 0.3.15")}),
            Answer("uv_sleep", {}, lambda got: not got["processes"][0].get("imported"))]],
        "What does the report say, and what could it not look for?": [[
            Answer("go1.25", {"trace.imported": has("a Go 1.25 execution trace"),
                              "verdict.category": "lock", "findings[0].rule": "lock-contention",
                              "findings[0].where[0].function": "main.(*account).slowly",
                              "coverage": lambda c: not c["kernel-scheduling-delay"]["checked"]}),
            Answer("dial9", {"trace.imported": has("dial9"), "coverage": lambda c:
                             not c["lock-contention"]["checked"]})]],
        "What do goroutines or tasks spend their time on?": [[
            Answer("go1.25", {"[0].kind": "main.main", "[0].tasks": 1, "[0].busy_ns": above(10**7)})]],
        "Which of them wait for a lock?": [[
            Answer("go1.25", {}, any_row(kind="main.contend.func2", waits_for="sync.Mutex"))]],
        "Who wakes whom?": [[
            Answer("go1.25", {}, any_row(waker="main.talk.func1", woken="main.main",
                                         wakes=above(10))),
            Answer("dial9", {}, any_row(woken=has("src/main.rs:"), wakes=above(1)))]],
    },
}
