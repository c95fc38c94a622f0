"""Count the lines of the package by tier, as `make lines` prints them; fails beyond the first budget.

python -m tests.lines
"""

import io
import pathlib
import sys
import tokenize

ROOT = pathlib.Path(__file__).resolve().parent.parent / "minijax"

TIERS = {  # packages and modules, and the budget of all their lines together
    "weekend set": (("core", "transforms", "lowering", "arrays"), 7_000),
    "operations": (("lax",), 25_000),
    "compatibility": (
        ("jax", "interpreters", "extend", "experimental", "example_libraries"), 19_000,
    ),
    "tools": (("difftest", "explain"), 6_000),
    "machine": (
        ("runtime", "arguments", "features", "config", "errors", "dtypes", "tree_util", "tree", "namespace",
         "collector", "installation", "late_names", "accepted_options", "array_members", "deprecated", "monitoring",
         "tracebacks", "version", "typing"), 15_000,
    ),
    "libraries": ((), 25_000),  # all the rest
}  # fmt: skip


def tier_of(path):
    part = path.relative_to(ROOT).parts[0].removesuffix(".py").removesuffix(".pyi")
    return next((name for name, (parts, _) in TIERS.items() if part in parts), "libraries")


def docstring_lines(text):
    """The number of lines of docstrings: strings that are statements."""
    count, last = 0, tokenize.NEWLINE
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.STRING and last in (tokenize.NEWLINE, tokenize.INDENT):
            count += token.end[0] - token.start[0] + 1
        if token.type not in (tokenize.NL, tokenize.COMMENT, tokenize.ENCODING):
            last = tokenize.NEWLINE if token.type == tokenize.DEDENT else token.type
    return count


def counts():
    """By tier: lines, and how many of them are docstrings."""
    found = {name: [0, 0] for name in TIERS}
    for path in sorted([*ROOT.rglob("*.py"), *ROOT.rglob("*.pyi")]):
        text = path.read_text()
        tier = found[tier_of(path)]
        tier[0] += text.count("\n")
        tier[1] += docstring_lines(text)
    return found


def main():
    found = counts()
    for name, (lines, docstrings) in found.items():
        budget = TIERS[name][1]
        mark = "  over" if lines > budget else ""
        print(f"{name:14} {lines:8,} lines, {docstrings:7,} of docstrings; budget {budget:,}{mark}")
    total, docstrings = (sum(column) for column in zip(*found.values(), strict=True))
    print(f"{'all':14} {total:8,} lines, {docstrings:7,} of docstrings")
    return found["weekend set"][0] > TIERS["weekend set"][1]


if __name__ == "__main__":
    sys.exit(main())
