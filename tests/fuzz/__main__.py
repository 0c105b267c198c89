"""``python -m tests.fuzz``: changed tables, models, studies and checkpoints, for some minutes."""

import argparse
import sys

from tests.fuzz.fuzz import fuzz

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--seconds", type=float, default=900.0, help="how long")
parser.add_argument("--count", type=int, help="how many files at most")
parser.add_argument("--seed", type=int, default=0, help="decides all of them")
parser.add_argument("--only", default="", help="targets whose name has this in it")
options = parser.parse_args()
tally = fuzz(**vars(options))
print(tally)
sys.exit(bool(tally.findings))
