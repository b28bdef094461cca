"""Writes the tables of README.md and docs/measurements/peers.md, and README's picture, from the files of measurements
docs/measurements/peers.tsv (scripts/peers.sh) and sparsity_results.tsv (scripts/sparsity_results.sh).

usage: bench/peers/publish.py [--check]

--check writes nothing, needs no matplotlib, and fails where a table or the picture is not of these files.
"""
import hashlib
import pathlib
import statistics
import sys
import textwrap

import configurations

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PLACE = ROOT / "docs/measurements"
PEERS, ACCURACIES, PICTURE = PLACE / "peers.tsv", PLACE / "sparsity_results.tsv", PLACE / "peers.svg"
BEGIN, END = "<!-- table: scripts/peers.sh -->", "<!-- end of the table -->"
SHORT = {"mlp": "MLP 784-300-100-10", "resnet20": "ResNet-20", "gpt": "GPT 4 × 128", "block": "BERT-base layer"}
COLUMNS = (("pytorch", "dense", 0.0), ("pytorch", "mask", 0.9), ("pytorch", "csr", 0.9), ("pytorch", "bf16", 0.0),
           ("lacuna", "dense", 0.0), *(("lacuna", "sparse", sparsity) for sparsity in configurations.SPARSITIES))


class Peers:
    """What peers.py wrote."""

    def __init__(self, path):
        lines = [line.split("\t") for line in path.read_text(encoding="utf-8").splitlines()]
        self.facts = {line[0][2:]: line[1] for line in lines if line[0].startswith("# ")}
        names, *rows = (line for line in lines if not line[0].startswith("# "))
        rows = [dict(zip(names, row)) for row in rows]
        self.rows = {(row["network"], int(row["threads"]), row["program"], row["kind"], float(row["sparsity"])): row
                     for row in rows}
        self.cases = list(dict.fromkeys((row["network"], int(row["threads"])) for row in rows))
        self.cases.sort(key=lambda case: (list(configurations.NETWORKS).index(case[0]), case[1]))

    def row(self, case, contender):
        return self.rows.get((*case, *contender))

    def ms(self, case, contender):
        row = self.row(case, contender)
        return float(row["ms"]) if row else None

    def gains(self, contender, over=("pytorch", "dense", 0.0)):
        """How many times faster than another one, from the least to the most."""
        return sorted(self.ms(case, over) / self.ms(case, contender) for case in self.cases)

    def where(self):
        f = self.facts
        return f"{f['processor']}, {f['date']}, PyTorch {f['pytorch']}, {f['lacuna']}"

    def disturbed(self):
        """A remark where other programs took more than 5 % of the processors; empty in a quiet run."""
        others = float(self.facts["others"])
        return f"Other programs took {100 * others:.0f} % of the processors: these times are not reliable." \
            if others > 0.05 else ""


def three_digits(ms):
    return f"{ms:.2f}" if ms < 10 else f"{ms:.1f}" if ms < 100 else f"{ms:.0f}"


def span(gains):
    return f"{gains[0]:.1f} to {gains[-1]:.1f}"


def table(peers, with_spread):
    lines = ["| network | threads | PyTorch dense | × mask | CSR 90 % | bf16 | lacuna dense | 80 % | 90 % | 95 % |",
             "|---|---|---|---|---|---|---|---|---|---|"]
    for case in peers.cases:
        cells = []
        for contender in COLUMNS:
            row = peers.row(case, contender)
            cell = three_digits(float(row["ms"])) if row else "–"
            if row and with_spread:
                cell += f" ± {50 * float(row['spread']):.0f} %"
            cells.append(cell)
        name = configurations.NETWORKS[case[0]].title if with_spread else SHORT[case[0]]
        lines.append(f"| {name} | {case[1]} | {' | '.join(cells)} |")
    return lines


def readme_block(peers):
    at_90, dense, bf16 = ("lacuna", "sparse", 0.9), ("lacuna", "dense", 0.0), ("pytorch", "bf16", 0.0)
    text = f"Milliseconds of a whole training step ({peers.where()})."
    if not peers.disturbed():
        text += (f" lacuna at 90 % sparsity is {span(peers.gains(at_90))} times as fast as dense PyTorch; lacuna without "
                 f"sparsity is {span(peers.gains(dense))} times as fast.")
    if not peers.disturbed() and all(peers.row(case, bf16) for case in peers.cases):
        text += (f" Compared with PyTorch in bf16 ({peers.facts['bf16']}), lacuna at 90 % in float32 is "
                 f"{span(peers.gains(at_90, over=bf16))} times as fast.")
    return "\n".join([*paragraph(text, peers.disturbed()), "", *table(peers, with_spread=False)])


def page_block(peers):
    rounds = [int(row["rounds"]) for row in peers.rows.values()]
    count = f"{min(rounds)} to {max(rounds)}" if min(rounds) < max(rounds) else max(rounds)
    text = f"Measured on {peers.where()}; {count} rounds. bf16: {peers.facts['bf16']}."
    return "\n".join([*paragraph(text, peers.disturbed()), "", *table(peers, with_spread=True)])


def paragraph(*texts):
    return textwrap.wrap(" ".join(text for text in texts if text), 120, break_on_hyphens=False)


def with_block(text, block, path):
    before, begin, rest = text.partition(BEGIN)
    inside, end, after = rest.partition(END)
    if not begin or not end:
        sys.exit(f"publish: {path} has no lines '{BEGIN}' and '{END}'")
    return f"{before}{begin}\n\n{block}\n\n{end}{after}"


def accuracies():
    """For each variant, as rigl-90: the mean, the lowest and the highest test accuracy in percent."""
    values = {}
    for line in ACCURACIES.read_text(encoding="utf-8").splitlines()[1:]:
        variant, _, accuracy = line.split("\t")[:3]
        values.setdefault(variant, []).append(100 * float(accuracy))
    return {variant: (statistics.mean(v), min(v), max(v)) for variant, v in values.items()}


def stamp():
    """Names the files that the picture is drawn from, by their content."""
    sums = " ".join(hashlib.sha256(path.read_bytes()).hexdigest()[:16] for path in (PEERS, ACCURACIES))
    return f"<!-- drawn from {PEERS.name} and {ACCURACIES.name}: {sums} -->"


def draw_accuracy(axes):
    found = accuracies()
    dense = found["dense-0"][0]
    axes.axhline(dense, color="0.45", linestyle="--", linewidth=1)
    axes.text(81, dense + 0.05, f"dense: {dense:.2f} %", color="0.35", fontsize=8)
    for name, title, color in (("gmp", "GMP", "#9467bd"), ("rigl", "RigL", "#1f77b4")):
        points = sorted((int(variant.split("-")[1]), *v) for variant, v in found.items() if variant.startswith(name))
        x, mean, low, high = zip(*points)
        axes.fill_between(x, low, high, color=color, alpha=0.15, linewidth=0)
        axes.plot(x, mean, "o-", color=color, label=title, markersize=4)
    axes.set_title("Accuracy: the MLP on MNIST", fontsize=9)
    axes.set_xlabel("sparsity of the hidden layers, %")
    axes.set_ylabel("test accuracy, %")
    axes.set_xticks([80, 90, 95, 98])
    axes.legend(frameon=False, loc="lower left")


def draw_time(axes, peers):
    places = [("lacuna", "dense", 0.0)] + [("lacuna", "sparse", s) for s in configurations.SPARSITIES]
    masks = sorted(1 / gain for (network, threads) in peers.cases if threads == 1 for gain in
                   [peers.ms((network, threads), ("pytorch", "dense", 0.0)) /
                    peers.ms((network, threads), ("pytorch", "mask", 0.9))])
    axes.axhline(1.0, color="0.45", linestyle="--", linewidth=1)
    axes.text(4.7, 1.03, f"PyTorch, dense (with a mask: {masks[0]:.2f} to {masks[-1]:.2f})", color="0.35", fontsize=8,
              ha="right", va="bottom")
    ends = []
    colors = {"mlp": "#1f77b4", "resnet20": "#ff7f0e", "gpt": "#2ca02c", "block": "#d62728"}
    for network, color in colors.items():
        case = (network, 1)
        if case not in peers.cases:
            continue
        shares = [peers.ms(case, place) / peers.ms(case, ("pytorch", "dense", 0.0)) for place in places]
        axes.plot(range(len(places)), shares, "o-", color=color, markersize=4)
        ends.append((shares[-1], SHORT[network], color))
    axes.set_yscale("log")
    ticks = [1.0, 0.5, 0.2, 0.1, 0.05]
    axes.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.minorticks_off()
    low, high = axes.get_ylim()
    low, high = min(low, 0.045), max(high, 1.3)
    axes.set_ylim(low, high)
    # Names at the ends of the lines, one above the other.
    place = 0.0
    for share, name, color in sorted(ends):
        place = max(place, share)
        axes.text(3.1, place, name, color=color, va="center", fontsize=8)
        place *= (high / low) ** 0.07
    axes.set_xlim(-0.15, 4.7)
    axes.set_xticks(range(len(places)), ["dense"] + [f"{100 * s:.0f}" for s in configurations.SPARSITIES])
    axes.set_title("Time of a training step, one thread", fontsize=9)
    axes.set_xlabel("sparsity in lacuna, %")
    axes.set_ylabel("share of PyTorch's dense step")


def draw(peers):
    import matplotlib  # not needed by --check
    matplotlib.use("svg")
    from matplotlib import pyplot
    pyplot.rcParams.update({"font.size": 8, "svg.hashsalt": "lacuna", "axes.spines.top": False,
                            "axes.spines.right": False, "axes.grid": True, "grid.color": "0.92"})
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(8.3, 3.3))
    draw_accuracy(left)
    draw_time(right, peers)
    note = " ".join([peers.facts["processor"] + ".", peers.disturbed()]).strip()
    figure.text(0.995, 0.01, note, ha="right", fontsize=6.5, color="0.45")
    figure.tight_layout()
    # White behind, because pages may be dark.
    figure.savefig(PICTURE, facecolor="white", metadata={"Date": None, "Creator": None})
    text = PICTURE.read_text(encoding="utf-8")
    PICTURE.write_text("\n".join(line.rstrip() for line in text.splitlines()) + f"\n{stamp()}\n", encoding="utf-8")


def main():
    is_check = sys.argv[1:] == ["--check"]
    if sys.argv[1:] and not is_check:
        sys.exit(__doc__)
    peers = Peers(PEERS)
    for path, block in ((ROOT / "README.md", readme_block(peers)), (PLACE / "peers.md", page_block(peers))):
        text = path.read_text(encoding="utf-8")
        written = with_block(text, block, path)
        if is_check and text != written:
            sys.exit(f"publish: the table in {path} is not that of {PEERS}; scripts/peers.sh --draw writes it")
        if not is_check:
            path.write_text(written, encoding="utf-8")
    if is_check:
        if not PICTURE.exists() or stamp() not in PICTURE.read_text(encoding="utf-8"):
            sys.exit(f"publish: {PICTURE} is not drawn from the files of today; scripts/peers.sh --draw draws it")
    else:
        draw(peers)


if __name__ == "__main__":
    main()
