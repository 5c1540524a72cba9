#!/usr/bin/env python3
"""Kills recorded processes at every named point of the recorder and reads what is left."""
import sys

import libpoints

sys.exit(libpoints.run('kill-points', libpoints.names()))
