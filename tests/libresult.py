"""How scripts tell results, as tests/harness.py reads them: a line for each check. Standard library
only."""
import sys

failures = []  # names of checks


def check(name, condition, why=''):
    if condition:
        print(f'ok {name}')
    else:
        failures.append(name)
        why = str(why).replace('\n', ' | ')[:900]
        print(f'not ok {name}: {why or "false"}')
    sys.stdout.flush()
    return bool(condition)


def skip(name, reason):
    print(f'skip {name}: {reason}')
    sys.stdout.flush()


def status():
    """That with which a script ends."""
    return 1 if failures else 0
