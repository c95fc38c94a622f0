"""`python -m minijax.difftest`: run programs, replay scripts, report.

python -m minijax.difftest fuzz --seed 0 --composed 1000 --single 5000 --abstract 20000
python -m minijax.difftest show --seed 0 --number 17 --mode composed
python -m minijax.difftest replay FOLDER_OR_FILES
python -m minijax.difftest report FOLDER --html report.html
python -m minijax.difftest check module:function
python -m minijax.difftest mutate --count 2000
python -m minijax.difftest coverage --count 500
"""

from __future__ import annotations

import argparse
import importlib
import os
import pathlib
import sys

from minijax.difftest import checking, coverage, faults, fuzzing, programs, report, scripts
from minijax.difftest.generating import MODES, generate
from minijax.difftest.judging import judge
from minijax.difftest.shrinking import shrink


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        "python -m minijax.difftest", description=__doc__.splitlines()[0]
    )
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("fuzz", help="run many programs under both libraries")
    run.add_argument("--seed", type=int, default=0)
    for mode, count in zip(MODES, (100, 500, 2000), strict=True):
        run.add_argument(f"--{mode}", type=int, default=count, help=f"number of {mode} programs")
    run.add_argument("--seconds", type=float, default=0.0, help="limit of CPU time, 0 for none")
    run.add_argument("--jobs", type=int, default=1)
    run.add_argument("--folder", type=pathlib.Path, default=pathlib.Path("difftest-run"))
    run.add_argument("--patience", type=float, default=60.0, help="seconds of one program")
    show = commands.add_parser("show", help="print one program, run it, and shrink what it finds")
    show.add_argument("--seed", type=int, default=0)
    show.add_argument("--number", type=int, default=0)
    show.add_argument("--mode", choices=MODES, default="composed")
    replay = commands.add_parser("replay", help="judge the programs of scripts again")
    replay.add_argument("paths", nargs="+", type=pathlib.Path)
    for command in (run, replay):
        command.add_argument(
            "--subject", default="jax", help="what is compared with minijax, such as jax==0.12.0.1"
        )
    told = commands.add_parser("report", help="print what a run found")
    told.add_argument("folder", type=pathlib.Path)
    told.add_argument("--html", type=pathlib.Path, help="write all to this file, with coverage")
    told.add_argument("--count", type=int, default=200, help="programs that coverage counts")
    check = commands.add_parser("check", help="check a function under all transforms")
    check.add_argument(
        "function", help="module:function:arguments; without the last, its ARGUMENTS"
    )
    mutate = commands.add_parser("mutate", help="plant the faults of faults.txt and look for them")
    mutate.add_argument("names", nargs="*", help="primitives; all if none is given")
    covered = commands.add_parser("coverage", help="print how many programs run each rule")
    for command, count in ((mutate, 2000), (covered, 200)):
        command.add_argument("--seed", type=int, default=0)
        command.add_argument("--count", type=int, default=count)
    options = parser.parse_args(arguments)
    if options.command in ("coverage", "fuzz", "mutate", "show"):
        # No client of XLA has started yet; programs use meshes of two devices.
        os.environ.update(fuzzing.variables())
    return _COMMANDS[options.command](options)


def _fuzz(options) -> int:
    counts = {mode: getattr(options, mode) for mode in MODES}
    plan = fuzzing.Plan(
        counts, options.seed, options.seconds, options.jobs, patience=options.patience,
        subjects=("minijax", options.subject),
    )  # fmt: skip
    progress = fuzzing.fuzz(plan, options.folder, lambda p: print(p, file=sys.stderr, flush=True))
    print(progress)
    return _report(options)


def _show(options) -> int:
    program = generate(options.seed, options.number, options.mode)
    print(programs.text(program), f"ARGUMENTS = {programs.arguments_text(program)}", sep="\n")
    print(f"X64 = {program.x64}\n")
    found = judge(program)
    if found is None:
        print("no difference")
        return 0
    print(scripts.script(shrink(found)))
    return 1


def _replay(options) -> int:
    status = 0
    for path in options.paths:
        for file in sorted(path.glob("**/*.py")) if path.is_dir() else [path]:
            print(file.name, end=": ", flush=True)
            status |= scripts.replayed(file, options.subject)
    return status


def _report(options) -> int:
    """Print the findings of a folder, one paragraph each; status 1 if there are any."""
    found = report.findings(options.folder)
    for key, entry in found.items():
        print(f"{entry['verdict']}: {', '.join(key)}: {entry['detail']}\n    {entry['file']}")
        for sentence in entry.get("evidence", ()):
            print(f"    {sentence[:300]}")
    if getattr(options, "html", None):
        options.html.write_text(report.page(options.folder, options.count))
    return int(bool(found))


def _check(options) -> int:
    """Check a function of a module on the arguments that another name of it holds."""
    sys.path.insert(0, "")
    module, name, *example = options.function.split(":")
    home = importlib.import_module(module)
    checked = checking.check(
        getattr(home, name), *getattr(home, example[0] if example else "ARGUMENTS")
    )
    print(checked)
    return int(not checked)


def _mutate(options) -> int:
    """Print whether each fault was found, and by which program; status 1 if one was not."""
    rows = [f for f in faults.faults() if not options.names or f.primitive in options.names]

    def say(score):
        kind = score.finding and score.finding.difference.kind
        found = f"found by {score.tried}: {kind}" if kind else "missed"
        print(f"{score.fault}: {found}; {score.reached} that run the rule were tried", flush=True)

    scores = faults.hunt(rows, options.seed, options.count, say=say)
    found = sum(score.finding is not None for score in scores)
    print(f"{found} of {len(scores)} found")
    return int(found < len(scores))


def _coverage(options) -> int:
    table = coverage.Table.of(options.seed, options.count)
    print(table)
    print("never run:", ", ".join(" ".join(cell) for cell in table.never()))
    few = table.seldom(coverage.ENOUGH)
    print(
        f"{len(few)} of {len(table.cells)} cells run by fewer than {coverage.ENOUGH} programs, without a reason"
    )
    return 0


_COMMANDS = {
    "check": _check, "coverage": _coverage, "mutate": _mutate, "fuzz": _fuzz, "show": _show,
    "replay": _replay, "report": _report,
}  # fmt: skip

if __name__ == "__main__":
    sys.exit(main())
