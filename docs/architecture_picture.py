"""Draws docs/architecture.svg, the packages by layer, from the list in tests/structure: `python docs/architecture_picture.py`."""

import ast
from html import escape
from pathlib import Path

ROOT = Path(__file__).parents[1]
PICTURE = ROOT / "docs" / "architecture.svg"
SOURCE = ROOT / "tests" / "structure" / "test_house.py"
# What a package is for, in a few words. The layers and their order are those of the list.
WORDS = {
    "storage": "files at a URL",
    "processes": "several processes as one",
    "hlo": "what a compiled program does",
    "sharding": "meshes, rules, placement of arrays",
    "data": "readers, tokenizers, shards, rows: NumPy only",
    "formats": "tensors of other projects, by name",
    "layers": "attention, norms, LSTMs, blocks",
    "heads": "a module, its labels, its loss",
    "families": "BERT, ELECTRA, XLNet, ELMo, ALBERT, GPT, DistilBERT",
    "objectives": "corruption, losses, predictions",
    "optim": "optimizers, schedules, rates by path",
    "checkpoint": "write, verify, restore",
    "training": "a run: state, step, loop, evaluation, log",
    "tasks": "fine-tuning: data, scores, results",
    "inference": "a model in Python",
    "convert": "published models in and out",
    "reports": "what a run says of itself",
    "bench": "timings",
    "doctor": "what may be wrong before a run",
    "cli": "one file a command: parses, calls, prints",
}
WIDTH, ROW, TALL, GAP, LEFT = 620, 34, 54, 6, 40


def layers() -> list[tuple[str, ...]]:
    """LAYERS of tests/structure, from the bottom up."""
    tree = ast.parse(SOURCE.read_text())
    found = (node for node in tree.body if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "LAYERS")
    return list(ast.literal_eval(next(found).value))


def box(top: int, names: tuple[str, ...]) -> str:
    """One layer: its name and what it is for, or several names on two lines."""
    height = ROW if len(names) == 1 else TALL
    frame = f'<rect x="{LEFT}" y="{top}" width="{WIDTH - LEFT - 10}" height="{height}" rx="5" fill="#ffffff" stroke="#7a8ba6"/>'
    line = lambda x, y, text, weight: f'<text x="{LEFT + x}" y="{top + y}" font-weight="{weight}">{escape(text)}</text>'
    if len(names) == 1:
        return frame + line(12, 22, names[0], 600) + line(130, 22, WORDS[names[0]], 400)
    half = len(names) // 2
    return frame + line(12, 21, " · ".join(names[:half]), 600) + line(12, 43, " · ".join(names[half:]), 600)


def svg() -> str:
    """The whole picture: the command line at the top, an arrow in the direction of the imports."""
    order = list(reversed(layers()))
    heights = [(ROW if len(names) == 1 else TALL) + GAP for names in order]
    height = sum(heights) + 14
    rows = [box(10 + sum(heights[:i]), names) for i, names in enumerate(order)]
    arrow = (
        f'<path d="M20 14 V{height - 22}" stroke="#7a8ba6" stroke-width="2"/><path d="M14 {height - 24} h12 l-6 12 z" fill="#7a8ba6"/>'
        f'<text transform="translate(14 {height // 2}) rotate(-90)" text-anchor="middle" font-size="13">imports</text>'
    )
    label = "The packages of jaxenc, one layer a row; a layer imports only itself and what is below it."
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{label}"'
            ' font-family="system-ui, sans-serif" font-size="15" fill="#1d2733">',
            f'<rect width="{WIDTH}" height="{height}" rx="8" fill="#eef2f7"/>',
            arrow,
            *rows,
            "</svg>\n",
        ]
    )


if __name__ == "__main__":
    PICTURE.write_text(svg())
