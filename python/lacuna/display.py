"""How runs, plans and masks look in a notebook: HTML, with pictures in it."""

from __future__ import annotations

import base64
from html import escape
from typing import Any, Iterable, Sequence

from lacuna import _lacuna

_CELL = "padding:2px 10px;text-align:"


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool) or not _is_number(value):
        return escape(str(value))
    return f"{value:,}" if isinstance(value, int) else f"{value:.4g}"


def _cell(kind: str, value: Any) -> str:
    side = "right" if _is_number(value) else "left"
    return f'<{kind} style="{_CELL}{side}">{_text(value)}</{kind}>'


def table(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """An HTML table; numbers to the right."""
    head = "".join(_cell("th", column) for column in columns)
    body = "".join(
        "<tr>" + "".join(_cell("td", value) for value in row) + "</tr>" for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _image(png: bytes, caption: str, width: int = 200) -> str:
    data = base64.b64encode(png).decode("ascii")
    return (
        '<figure style="display:inline-block;margin:4px">'
        f'<img alt="{escape(caption)}" width="{width}" style="image-rendering:pixelated;'
        f'border:1px solid #ccc" src="data:image/png;base64,{data}">'
        f"<figcaption>{escape(caption)}</figcaption></figure>"
    )


class MaskPicture:
    """A picture of a mask, with one pixel per position, or per tile of a large mask. Dark is dense.

    Notebooks display it; `save` writes it to a file.
    """

    def __init__(self, mask: Any, caption: str = "", *, most_pixels: int = 400):
        """mask: an array of bools, or a parameter. Dimension 0 is the rows, all others together
        the columns. Raises ShapeError if there are no positions."""
        import numpy

        if hasattr(mask, "mask") and not isinstance(mask, numpy.ndarray):
            caption = caption or getattr(mask, "name", "")
            mask = mask.mask
        mask = numpy.ascontiguousarray(mask, dtype=bool)
        self.density = float(mask.mean()) if mask.size else 0.0
        self.caption = caption
        self.png, self.width, self.height = _lacuna._mask_png(mask, most_pixels)

    def save(self, path: Any) -> None:
        """Writes a PNG file."""
        with open(path, "wb") as file:
            file.write(self.png)

    def __repr__(self) -> str:
        return f"<lacuna.MaskPicture {self.caption!r}: density {self.density:.3f}>"

    def _repr_png_(self) -> bytes:
        return self.png

    def _repr_html_(self) -> str:
        width = max(120, min(self.width, 400))
        return _image(self.png, f"{self.caption} density {self.density:.3f}".strip(), width)


_SUMMARY = (
    ("test_accuracy", "test accuracy"),
    ("validation_accuracy", "validation accuracy"),
    ("test_precision_at_1", "test precision at 1"),
    ("test_loss", "test loss"),
    ("test_perplexity", "test perplexity"),
    ("steps", "steps"),
    ("sparsity", "sparsity"),
    ("nnz", "nonzeros"),
    ("numel", "parameters"),
)


def run_html(run: Any) -> str:
    """A run: its state, the main results, and the newest picture of each mask."""
    summary = run.summary or {}
    rows = [("state", run.state)]
    rows += [(name, summary[key]) for key, name in _SUMMARY if summary.get(key) is not None]
    parts = [f"<b>Run {escape(run.run_dir)}</b>", table(("", ""), rows)]
    for parameter, step, density, png in _lacuna._newest_masks(run.run_dir, 200):
        parts.append(_image(png, f"{parameter}, step {step}, density {density:.3f}"))
    return "".join(parts)


def plan_html(plan: Any) -> str:
    """A plan: its modules and its parameters."""
    report = plan.report
    head = (
        f"<b>Plan: {report['steps']:,} steps, {report['final_nnz']:,} of {report['numel']:,} "
        "parameters are nonzeros at the end</b>"
    )
    layers = table(
        ("layer", "type", "output", "parameters", "final nnz", "inference FLOPs", "dense"),
        (
            (
                row["path"],
                row["type"],
                " × ".join(str(size) for size in row.get("output", [])),
                row["parameters"],
                row["final_nnz"],
                row["inference_flops"],
                row["dense_inference_flops"],
            )
            for row in report["layers"]
        ),
    )
    parameters = table(
        ("parameter", "shape", "algorithm", "initial nnz", "final nnz", "sparsity", "layout"),
        (
            (
                row["parameter"],
                " × ".join(str(size) for size in row["shape"]),
                row["algorithm"],
                row["initial_nnz"],
                row["final_nnz"],
                float(row["final_sparsity"]),
                row["final_layout"],
            )
            for row in report["parameters"]
        ),
    )
    return head + layers + parameters
