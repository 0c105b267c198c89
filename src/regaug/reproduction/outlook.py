"""What of an experiment is done, and what is left, in words."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from regaug.formatting import count, duration, percent, sentences
from regaug.problems import Problem
from regaug.reproduction.tables import Size
from regaug.runs.record import RunRecord
from regaug.runs.run import Run
from regaug.runs.tasks import Workforce, estimate_seconds


@dataclass(frozen=True)
class Outlook:
    """How far an experiment has come on a data set.

    Attributes:
        runs: Those of the size that was run.
        rest: Those of the full size that are not done.
        size: What was cut to fit the time.
    """

    runs: Sequence[Run]
    rest: Sequence[Run]
    size: Size

    def say(
        self,
        data: str,
        records: Mapping[str, RunRecord],
        problems: Mapping[str, Problem],
        workforce: Workforce,
    ) -> str:
        """Say how many runs are done, what was cut, and how to go on, with the time it takes."""

        def time(runs: Sequence[Run]) -> str:
            return f"about {duration(estimate_seconds(runs, problems) / workforce.jobs)}"

        left = [run for run in self.runs if run.key not in records]
        total = len(self.runs)
        done = f"{data}: all {count(total, 'run')} are done"
        if left:
            done = f"{data}: {total - len(left):,} of {count(total, 'run')} are done"
        cut = self._say_cut(workforce.max_minutes)
        again = f"Run the same command again to go on ({time(left)})." if left else ""
        whole = f"For the whole, add --whole, without --epochs ({time(self.rest)})." if cut else ""
        return sentences(f"{done}{cut}.", again, whole)

    def _say_cut(self, minutes: float | None) -> str:
        if self.size.is_full:
            return ""
        words = {
            "paper": f"at most {count(self.size.epochs or 0, 'epoch')} in the paper's protocol",
            "tuned": f"{percent(self.size.trials)} of the settings of the tuned one",
        }
        run = {run.problem.rpartition("/")[2] for run in self.runs}
        said = [text for protocol, text in words.items() if protocol in run]
        fit = "" if minutes is None else f" to fit {minutes:g} min"
        return f", cut to {' and '.join(said)}{fit}"
