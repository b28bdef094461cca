"""Writes what docs/measurements shows of equal_time.py's tables: the summary in results.md, all final runs in equal-time.md,
and equal_time.svg."""
import collections
import math
import statistics

from equal_time_table import FOLDER, read, read_curves, read_steps

SUMMARY = FOLDER / "results.md"
PAGE = FOLDER / "equal-time.md"
PLOT = FOLDER / "equal_time.svg"
BEGIN, END = "<!-- begin of scripts/equal_time.py -->\n", "<!-- end of scripts/equal_time.py -->\n"
COLOURS = {"dense": "#1f77b4", "sparse": "#d62728"}
FULL_NAMES = {"init": "initial values", "drop": "drop fraction"}  # of settings that are shortened


def is_accuracy(row):
    return "accuracy" in row.reported


def finals(row, runs):
    """For each side the settings that were trained for the whole budget, the chosen ones first: (network, settings, runs)."""
    found = {}
    for side in row.sides:
        groups = collections.defaultdict(list)
        for run in runs:
            if (run.row, run.stage, run.side) == (row.name, "full", side):
                groups[run.network, run.settings].append(run)
        order = sorted(groups.items(), reverse=row.larger_is_better,
                       key=lambda item: next(float(run.metric) for run in item[1] if run.seed == "0"))
        found[side] = [(network, settings, group) for (network, settings), group in order]
    return found


def values(row, group):
    return [float(run.reported) * (100.0 if is_accuracy(row) else 1.0) for run in group]


def shown(row, group):
    numbers = values(row, group)
    digits = 2 if is_accuracy(row) else 3
    mean = f"{statistics.mean(numbers):.{digits}f}"
    return mean if len(numbers) == 1 else f"{mean} ({min(numbers):.{digits}f}–{max(numbers):.{digits}f})"


def settings_text(text):
    return ", ".join(f"{FULL_NAMES.get(key, key)} {value}" for key, value in (part.split("=") for part in text.split()))


def lead(row, best):
    """How far sparse is ahead of dense, and whether the ranges are apart."""
    a, b = (values(row, best[side][2]) for side in ("dense", "sparse"))
    gain = (statistics.mean(b) - statistics.mean(a)) * (1 if row.larger_is_better else -1)
    return gain, min(b) > max(a) or max(b) < min(a)


def verdict(row, best):
    """One sentence: which side is ahead, by how much, and whether the ranges are apart."""
    gain, apart = lead(row, best)
    unit, digits = ("points", 2) if is_accuracy(row) else ("nats", 3)
    ahead = f"**{'Sparse' if gain > 0 else 'Dense'} is ahead by {abs(gain):.{digits}f} {unit}**"
    return f"{ahead}; the ranges {'are apart' if apart else 'overlap'}."


def summary(drawn):
    """The best networks of each comparison."""
    lines = ["| comparison | dense | sparse | lead of sparse | thousand nonzeros |", "|---|---|---|--:|--:|"]
    for row, best in drawn:
        gain, apart = lead(row, best)
        sides = [f"{best[side][0]}: {shown(row, best[side][2])}" for side in ("dense", "sparse")]
        nonzeros = ", ".join(f"{int(best[side][2][0].nnz) / 1000:.0f}" for side in ("dense", "sparse"))
        amount = f"{gain:.{2 if is_accuracy(row) else 3}f}".replace("-", "−")
        lines.append(f"| {row.title} | {' | '.join(sides)} | {amount}{'' if apart else ', ranges overlap'} | {nonzeros} |")
    return lines


def put(page, text):
    """Between the page's two marks."""
    before, rest = page.read_text().split(BEGIN)
    page.write_text(before + BEGIN + "\n" + "\n".join(text) + "\n" + END + rest.split(END)[1])


def is_finished(found):
    """Other seeds are the last to be trained, and only of the best settings."""
    return all(groups and len(groups[0][2]) > 1 for groups in found.values())


def trials(row, runs):
    """How many of each side were made, which may be more than the row has now."""
    made = {side: sum(run.row == row.name and run.side == side and run.stage == "trial" for run in runs)
            for side in row.sides}
    if len(set(made.values())) == 1:
        return f"{made['dense']} trials per side."
    return f"{made['dense']} dense and {made['sparse']} sparse trials."


def table(row, found, steps):
    heading = "test accuracy, %" if is_accuracy(row) else "validation loss"
    lines = [f"| network | settings | thousand nonzeros | MB | ms per step | steps | {heading} | seeds |",
             "|---|---|--:|--:|--:|--:|--:|--:|"]
    for side, groups in found.items():
        for place, (network, settings, group) in enumerate(groups):
            first = group[0]
            name = f"{side}, {network}"
            lines.append("| " + " | ".join([
                f"**{name}**" if place == 0 else name, settings_text(settings), f"{int(first.nnz) / 1000:.0f}",
                f"{int(first.bytes) / 1e6:.1f}", f"{steps.get((row.name, side, network), 0.0):.2f}", first.steps,
                shown(row, group), str(len(group))]) + " |")
    return lines


def write(rows):
    runs, steps = read(), read_steps()
    text, drawn, open_rows = [], [], []
    for row in rows:
        found = finals(row, runs)
        if not is_finished(found):
            open_rows.append(row)
            continue
        best = {side: groups[0] for side, groups in found.items()}
        text += [f"### {row.title}", "", f"{verdict(row, best)} {trials(row, runs)} {row.conditions}".rstrip(),
                 f"Predicted: {row.predicted}.", "", *table(row, found, steps), ""]
        drawn.append((row, best))
    if open_rows:
        names = ", ".join(f"`{row.name}`" for row in open_rows)
        text += [f"Not finished yet: {names} (`scripts/equal_time.py DATA --row NAME` continues one).", ""]
    put(PAGE, text)
    short = []
    if drawn:
        draw(drawn, steps)
        plot = "![The best dense and the best sparse network over the training](equal_time.svg)"
        short = [*summary(drawn), "", plot, ""]
    put(SUMMARY, short)


def curves_of(row, best, steps):
    """For each side a list of curves, one per seed: (seconds or steps, value)."""
    points = read_curves()
    found = {}
    for side, (network, settings, _) in best.items():
        by_seed = collections.defaultdict(dict)
        for p in points:
            if (p.row, p.side, p.network, p.settings) == (row.name, side, network, settings):
                value = 100.0 * float(p.accuracy) if is_accuracy(row) else float(p.loss)
                step = int(p.step)
                by_seed[p.seed][step if row.steps else step * steps[row.name, side, network] / 1000.0] = value
        found[side] = [sorted(curve.items()) for curve in by_seed.values()]
    return found


def ticks(low, high):
    step = 10 ** math.floor(math.log10(high - low))
    while (high - low) / step < 3:
        step /= 2
    return [i * step for i in range(math.ceil(low / step), math.floor(high / step) + 1)]


def panel(row, best, steps, left):
    """A row's plot: a line for each seed of the best network of each side."""
    curves = curves_of(row, best, steps)
    everything = [point for side in curves.values() for curve in side for point in curve]
    if not everything:
        return []
    numbers = sorted(value for _, value in everything)
    low, high = numbers[0], numbers[-1]
    if not is_accuracy(row):
        high = min(high, low + 0.6)
    margin = 0.04 * (high - low)
    room = 5 * margin if is_accuracy(row) else 0.0  # for the names below
    low, high = low - margin - room, high + margin
    end = row.steps or row.seconds

    def x(value):
        return left + 300 * value / end

    def y(value):
        return 40 + 280 * (high - max(low, min(high, value))) / (high - low)

    svg = [f'<text x="{left + 150}" y="24" text-anchor="middle">{row.title}</text>']
    for tick in ticks(low, high):
        svg.append(f'<path d="M{left} {y(tick):.1f}h300" stroke="#dddddd"/>')
        svg.append(f'<text x="{left - 6}" y="{y(tick) + 4:.1f}" text-anchor="end">{tick:.4g}</text>')
    for i in range(5):
        svg.append(f'<text x="{x(end * i / 4):.1f}" y="338" text-anchor="middle">{end * i / 4:g}</text>')
    axis = "steps" if row.steps else "seconds of training on one core"
    what = "validation accuracy, %" if is_accuracy(row) else "validation loss"
    svg.append(f'<text x="{left + 150}" y="360" text-anchor="middle">{axis}</text>')
    svg.append(f'<text transform="translate({left - 44} 180) rotate(-90)" text-anchor="middle">{what}</text>')
    for place, (side, lines) in enumerate(curves.items()):
        for line in lines:
            inside = [point for point in line if point[1] <= high]
            svg.append(f'<polyline fill="none" stroke="{COLOURS[side]}" stroke-width="1.6" points="'
                       + " ".join(f"{x(s):.1f},{y(v):.1f}" for s, v in inside) + '"/>')
    words = [f"{side}, {best[side][0]}" for side in curves]
    begin = left + 258 - 6.3 * max(map(len, words))  # curves pass on the left
    for place, (side, text) in enumerate(zip(curves, words)):
        height = (270 if is_accuracy(row) else 60) + 20 * place
        svg.append(f'<rect x="{begin - 4:.0f}" y="{height - 10}" width="{left + 298 - begin:.0f}" height="20" '
                   'fill="white" fill-opacity="0.8"/>')
        svg.append(f'<path d="M{begin:.0f} {height}h24" stroke="{COLOURS[side]}" stroke-width="3"/>')
        svg.append(f'<text x="{begin + 30:.0f}" y="{height + 4}">{text}</text>')
    return svg


def draw(drawn, steps):
    """Three panels a row."""
    width, height = 380 * min(len(drawn), 3), 375 * math.ceil(len(drawn) / 3)
    svg = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12">',
           "<title>The best dense and the best sparse network over the time of training</title>",
           f'<rect width="{width}" height="{height}" fill="white"/>']
    for number, (row, best) in enumerate(drawn):
        svg.append(f'<g transform="translate(0 {375 * (number // 3)})">')
        svg += panel(row, best, steps, 60 + 380 * (number % 3))
        svg.append("</g>")
    PLOT.write_text("\n".join(svg + ["</svg>"]) + "\n")
