"""What the figures were measured on."""
import os
import pathlib
import platform
import re
import subprocess

from programs import ROOT

CLOCKSOURCE = '/sys/devices/system/clocksource/clocksource0/current_clocksource'


def read(path):
    try:
        return pathlib.Path(path).read_text().strip()
    except OSError:
        return ''


def first_line(*argv):
    try:
        done = subprocess.run(argv, capture_output=True, text=True, cwd=ROOT)
    except OSError:
        return None
    lines = done.stdout.strip().splitlines()
    return lines[0] if done.returncode == 0 and lines else None


def commit():
    """Of the tree, and whether it has been changed since; None outside of git."""
    name = first_line('git', 'rev-parse', '--short=12', 'HEAD')
    if not name:
        return None
    return name + ('+' if first_line('git', 'status', '--porcelain') else '')


def package(name):
    return first_line('dpkg-query', '-W', '-f=${Version}\n', name)


def describe():
    cpuinfo = read('/proc/cpuinfo')
    model, family, number = (re.search(rf'^{key}\s*:\s*(.*)', cpuinfo, re.MULTILINE)
                             for key in ('model name', 'cpu family', 'model'))
    release = re.search(r'^PRETTY_NAME="?([^"\n]*)', read('/etc/os-release'), re.MULTILINE)
    return {
        # Names in virtual machines say little; the numbers tell the processor.
        'cpu': f'{model.group(1)} (family {family.group(1)}, model {number.group(1)})'
        if model and family and number else platform.machine(),
        'cpus': os.cpu_count(),
        'virtual': bool(re.search(r'\bhypervisor\b', cpuinfo)),
        'kernel': platform.release(),
        'system': release.group(1) if release else None,
        'clocksource': read(CLOCKSOURCE) or None,
        'load_before': os.getloadavg()[0],
        'compiler': first_line('cc', '--version'),
        'libc': ' '.join(platform.libc_ver()),
        'lttng_ust': package('liblttng-ust-dev'),
        'lttng_tools': package('lttng-tools'),
        'commit': commit(),
    }
