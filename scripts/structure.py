#!/usr/bin/env python3
"""Counts what the code is made of, at one revision or several: scripts/structure.py REVISION...

Prints a table with one column for each revision. Folders that form circles are found by the test
`folders_form_no_circle` of this checkout, which reads the tree of each revision. Everything else is
counted here, in the files under crates/ that git keeps. Needs git and cargo; changes nothing.
"""

import collections
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
TYPE = re.compile(r"^\s*(?:pub(?:\([^)]*\))? )?(?:struct|enum|union|trait) (\w+)", re.M)
FUNCTION = re.compile(r"^( *)(?:pub(?:\([^)]*\))? )?(?:const |async |unsafe )*fn (\w+)", re.M)
ENUM = re.compile(r"^( *)(?:pub(?:\([^)]*\))? )?enum \w+[^{;]*\{\n(.*?)^\1\}", re.M | re.S)
DOC = re.compile(r"(?:^ *///[^\n]*\n)+", re.M)
CIRCLE = re.compile(r"has the circle \[([^]]*)\]")
LONG = 60
MANY = 13


def without_tests(text):
    """The part of a file before its tests, which stand at its end."""
    return re.split(r"^ *#\[cfg\(test\)\]\n *(?:pub(?:\([^)]*\))? )?mod ", text, maxsplit=1, flags=re.M)[0]


def lengths(text):
    """The number of lines of each function that has a body, by its indentation."""
    lines = text.split("\n")
    for match in FUNCTION.finditer(text):
        begin = text.count("\n", 0, match.start())
        indent, at = match.group(1), begin
        while at < len(lines) and not lines[at].rstrip().endswith(("{", ";", "}")):
            at += 1
        if at == len(lines) or lines[at].rstrip().endswith(";"):
            continue
        is_one_line = at == begin and lines[at].rstrip().endswith("}")
        while not is_one_line and at < len(lines) and lines[at].rstrip() != indent + "}":
            at += 1
        yield at - begin + 1


def variants(text):
    """The number of variants of each enum."""
    for match in ENUM.finditer(text):
        yield len(re.findall("^" + match.group(1) + r"    [A-Z]\w*", match.group(2), re.M))


def circles(tree):
    """What forms circles between folders, by the test of this checkout."""
    command = ["cargo", "test", "--quiet", "-p", "netsniff", "--test", "tidy", "rooms::folders_form_no_circle"]
    environment = dict(os.environ, NETSNIFF_TREE=str(tree))
    run = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    found = [len(match.split(",")) for match in CIRCLE.findall(run.stdout)]
    if (run.returncode == 0) != (not found):
        sys.exit(f"the circles of {tree} cannot be found:\n{run.stdout}{run.stderr}")
    return found


def count(revision, tree):
    """The counts of one revision, by their names."""
    archive = subprocess.run(["git", "archive", revision], cwd=ROOT, check=True, capture_output=True)
    subprocess.run(["tar", "-x", "-C", tree], input=archive.stdout, check=True)
    files = {path: path.read_text() for path in sorted(pathlib.Path(tree).glob("crates/**/*.rs"))}
    is_test = lambda path: "tests" in path.parts or path.name == "tests.rs"
    product = {path: without_tests(text) for path, text in files.items() if not is_test(path)}
    types = collections.Counter(name for text in product.values() for name in TYPE.findall(text))
    shared = [number for number in types.values() if number > 1]
    functions = [length for text in product.values() for length in lengths(text)]
    named = collections.Counter(match.group(2) for text in files.values() for match in FUNCTION.finditer(text))
    words = [len(" ".join(line.strip()[3:] for line in doc.strip().split("\n")).split())
             for text in product.values() for doc in DOC.findall(text)]
    folders = collections.Counter(path.parent for path in product if path.stem not in ("mod", "lib", "main"))
    found = circles(tree)
    return {
        "crates": len(list(pathlib.Path(tree).glob("crates/*/Cargo.toml"))),
        "files of the product": len(product),
        "lines of them": sum(text.count("\n") for text in product.values()),
        "files of more than 500 lines": sum(text.count("\n") > 500 for text in product.values()),
        "types": sum(types.values()),
        "names that types share, and types that share one": f"{len(shared)}, {sum(shared)}",
        "variants of enums": sum(number for text in product.values() for number in variants(text)),
        "functions": len(functions),
        "lines of a function: median, 90th percentile, most":
            f"{statistics.median(functions):.0f}, {statistics.quantiles(functions, n=10)[8]:.0f}, {max(functions)}",
        f"functions of more than {LONG} lines": sum(length > LONG for length in functions),
        "functions named tell, told, tell_... or told_...":
            sum(number for name, number in named.items() if re.match(r"(tells?|told)(_|$)", name)),
        "functions named report": named["report"],
        "doc comments of three words or fewer": sum(number <= 3 for number in words),
        "modules with #[path]": sum(text.count("#[path") for text in files.values()),
        "test programs": len(list(pathlib.Path(tree).glob("crates/*/tests/*.rs")))
            + len(list(pathlib.Path(tree).glob("crates/*/tests/*/main.rs"))),
        f"folders of more than {MANY} files": sum(number > MANY for number in folders.values()),
        "circles between folders": len(found),
        "files and folders in them": sum(found),
    }


def main():
    if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    columns = []
    for revision in sys.argv[1:]:
        with tempfile.TemporaryDirectory() as tree:
            columns.append(count(revision, tree))
    print("| | " + " | ".join(sys.argv[1:]) + " |")
    print("|---|" + "---:|" * len(columns))
    for name in columns[0]:
        print(f"| {name} | " + " | ".join(str(column[name]) for column in columns) + " |")


main()
