"""Write each notebook as an executed .ipynb beside its script (needs the ``docs`` extra)."""

from __future__ import annotations

from pathlib import Path

import jupytext
import nbformat
from nbclient import NotebookClient

HERE = Path(__file__).parent


def main() -> None:
    """Execute and write all of them."""
    for script in sorted(HERE.glob("[0-9]_*.py")):
        notebook = jupytext.read(script)
        notebook.metadata["kernelspec"] = {
            "name": "python3",
            "display_name": "Python 3",
            "language": "python",
        }
        NotebookClient(notebook, timeout=600, resources={"metadata": {"path": str(HERE)}}).execute()
        for i, cell in enumerate(notebook.cells):
            cell["id"] = f"cell-{i}"
            cell.metadata.pop("execution", None)
        nbformat.write(notebook, script.with_suffix(".ipynb"))


if __name__ == "__main__":
    main()
