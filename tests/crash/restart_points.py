#!/usr/bin/env python3
"""Recording is stopped and started again, and a thread forks, at named points of the recorder."""
import sys

import libpoints

# Those that only the thread passes which starts recording, forks or crashes.
OTHERS = ('box-', 'crash-', 'forked')

sys.exit(libpoints.run('restart-points',
                       [name for name in libpoints.names() if not name.startswith(OTHERS)]))
