"""The casebook's table: programs, and what a report must say of each first.

A fault lies on the lines of a program that are marked FAULT. `function` is what the first place
of the first finding must name; None: the fault has no place in the program's code.
"""
import os
import re

HERE = os.path.dirname(os.path.abspath(__file__))


class Case:
    def __init__(self, name, rule, function=None, alone=False, quota=None, api=False, calm=False,
                 dump=None, **env):
        self.name = name
        self.rule = rule
        self.function = function
        self.alone = alone  # it needs all CPUs, or fights for them: nothing else runs beside it
        self.quota = quota  # of a CPU, by a cgroup of its own
        # What else the machine does must not come before its fault. One that is not alone needs
        # little of a CPU, and has one while others run beside it.
        self.calm = calm or not alone
        self.dump = dump  # the window is taken after so many seconds; then it is ended
        self.api = api  # recorded by itself through tacho.h, without tacho run
        self.env = env
        self.source = os.path.join(HERE, name + '.c')

    def lines(self):
        with open(self.source, encoding='ascii') as f:
            return {number for number, line in enumerate(f, 1) if re.search(r'/\* FAULT', line)}


FAULTS = [
    # libuv
    Case('uv_long_callback', 'long-callback', 'parse_document'),
    Case('uv_rare_long', 'long-callback', 'rebuild_index'),
    Case('uv_long_and_files', 'long-callback', 'compile_rules'),
    Case('uv_sleep', 'blocking-call', 'retry_later'),
    Case('uv_resolve', 'blocking-call', 'connect_to'),
    Case('uv_log_pipe', 'blocking-call', 'log_line'),
    Case('uv_lock', 'lock-contention', 'flush_cache'),
    Case('uv_pool', 'pool-exhausted', 'make_thumbnail'),
    Case('uv_pool_dns', 'pool-exhausted', 'ask_name_server'),
    Case('uv_pool_files', 'pool-exhausted', 'on_archive'),
    Case('uv_pool_stuck', 'pool-exhausted', 'on_archive'),
    Case('uv_saturated', 'loop-saturated', 'score_quote', alone=True),
    Case('uv_idle_spin', 'loop-saturated', 'look_for_work', alone=True),
    Case('uv_flood', 'fd-flood', 'on_read', alone=True),
    Case('uv_wake_storm', 'wake-storm', 'on_lines'),
    Case('uv_timer_storm', 'timer-storm', 'check_again', alone=True),
    Case('uv_timer_late', 'timer-late', 'expire_session'),
    Case('uv_timer_burst', 'timer-late', 'refresh_lease'),
    Case('uv_write_backlog', 'write-backlog', 'publish'),
    Case('uv_stopped', 'process-pause'),
    Case('uv_outlier', 'outlier', 'on_request'),
    Case('uv_crash', 'crash', 'end_session'),
    Case('uv_never_yields', 'never-yields', 'search'),
    Case('uv_tiny', 'not-enough-data'),
    # libevent
    Case('event_long_callback', 'long-callback', 'count_sessions'),
    Case('event_pipe', 'blocking-call', 'ask_helper'),
    Case('event_bufferevent', 'blocking-call', 'rate_limit'),
    Case('event_condition', 'blocking-call', 'ask_and_wait'),
    Case('event_fsync', 'blocking-call', 'save_sessions'),
    Case('event_join', 'blocking-call', 'fetch_beside'),
    Case('event_short_lock', 'lock-contention', 'rotate_keys'),
    Case('event_saturated', 'loop-saturated', 'handle_message', alone=True),
    Case('event_timer_storm', 'timer-storm', 'look_again', alone=True),
    Case('event_abort', 'crash', 'release_session'),
    # epoll and threads
    Case('guess', 'lock-contention', 'send_report'),
    Case('epoll_waitpid', 'blocking-call', 'run_helper'),
    Case('epoll_printf', 'blocking-call', 'log_request'),
    Case('epoll_connect', 'blocking-call', 'reconnect'),
    Case('epoll_flock', 'blocking-call', 'append_journal'),
    Case('epoll_rwlock', 'lock-contention', 'scan_table'),
    Case('epoll_fork', 'blocking-call', 'save_snapshot', alone=True),
    Case('epoll_sched', 'kernel-scheduling-delay', alone=True),
    Case('epoll_starved', 'kernel-scheduling-delay', alone=True),
    Case('epoll_stopped', 'process-pause'),
    Case('epoll_quota', 'cpu-throttled', alone=True, quota=0.25),
    Case('epoll_quota_waits', 'cpu-throttled', alone=True, quota=0.25),
    Case('epoll_futile', 'futile-wakeups', 'main', alone=True),
    Case('epoll_flood', 'fd-flood', alone=True, calm=True),
    Case('epoll_imbalance', 'worker-imbalance', alone=True, calm=True),
    Case('epoll_deadlock', 'deadlock', 'leave_room'),
    Case('epoll_hang', 'hang', 'main', dump=3),
    Case('epoll_busy_lock', 'lock-contention', 'update_totals'),
    Case('api_loss', 'recorder-loss', TACHO_MAX_BYTES='1M'),
    # tasks of tacho.h
    Case('api_leak', 'task-leak', 'accept_more'),
    Case('api_lost_wake', 'stuck-task', 'wait_for_data'),
    Case('api_rhythm', 'rhythm-stopped', 'pusher'),
    Case('api_self_wake', 'self-wake', 'poll_flush', api=True),
    Case('api_wake_latency', 'wake-latency', 'request'),
    Case('api_queue_growth', 'queue-growth', api=True),
    Case('api_wake_storm', 'wake-storm', 'producer', api=True),
    Case('api_downstream', 'downstream-wait', 'query_database'),
    Case('api_memory_growth', 'memory-growth', 'heap', api=True),
    Case('api_memory_noise', 'memory-growth', 'rss', api=True),
    Case('api_write_backlog', 'write-backlog', 'write queue', api=True),
    Case('api_long_poll', 'long-callback', 'compact_table'),
    Case('api_never_yields', 'never-yields', 'drain_queue'),
]

HEALTHY = ['healthy_uv_echo', 'healthy_event_echo', 'healthy_idle', 'healthy_busy', 'healthy_pool',
           'healthy_tasks', 'healthy_ended', 'healthy_one_user', 'healthy_quiet', 'healthy_render',
           'healthy_workers', 'healthy_warmup']
# Of these, those that need much of a CPU, or more than one.
HEALTHY_ALONE = ['healthy_busy', 'healthy_one_user', 'healthy_render', 'healthy_workers']
# Those that record and save their window by themselves.
HEALTHY_API = ['healthy_warmup']
