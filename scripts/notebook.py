#!/usr/bin/env python3
"""Executes a notebook, and ends with 1 at the first cell that fails.

Usage: notebook.py NOTEBOOK
"""

import sys

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError


def main(path):
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    try:
        NotebookClient(notebook, timeout=120, kernel_name="python3").execute()
    except CellExecutionError as error:
        print(error, file=sys.stderr)
        return 1
    cells = sum(cell.cell_type == "code" for cell in notebook.cells)
    print(f"{path}: {cells} cells were executed")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
