"""Shows pages of `lacuna report` in headless Chromium, with scripts and without.

usage: browser_test.py LACUNA CHROMIUM FOLDER

FOLDER keeps the pages and their screenshots.
"""
import base64
import html.parser
import http.server
import itertools
import json
import os
import re
import shutil
import struct
import subprocess
import sys
import threading
import zlib

from tiny_runs import fresh_folder, lacuna, train

DARK = (15, 42, 82)  # of a mask's positions
BLUE, ORANGE = (0x00, 0x72, 0xB2), (0xD5, 0x5E, 0x00)  # of curves


def unfiltered(way, row, before, channels):
    """A row of a PNG file whose filter is `way`, after the row `before`."""
    if way == 0:
        return row
    if way == 1:
        for c in range(channels):
            sums = itertools.accumulate(row[c::channels])
            row[c::channels] = bytes(value & 0xFF for value in sums)
        return row
    if way == 2:
        return bytearray((a + b) & 0xFF for a, b in zip(row, before)) if any(row) else before
    for c in range(channels):
        left = corner = 0
        for x in range(c, len(row), channels):
            above = before[x]
            if way == 3:
                near = (left + above) // 2
            elif above == corner:
                near = left
            elif left == corner:
                near = above
            else:
                near = min((abs(above - corner), 0, left), (abs(left - corner), 1, above),
                           (abs(left + above - 2 * corner), 2, corner))[2]
            left = row[x] = row[x] + near & 0xFF
            corner = above
    return row


def png_pixels(png):
    """(width, height, rows of colours) of a PNG file with 8 bits a channel, or a palette."""
    assert png[:8] == b"\x89PNG\r\n\x1a\n"
    place, packed, palette = 8, b"", b""
    while place < len(png):
        size, kind = struct.unpack_from(">I4s", png, place)
        body = png[place + 8:place + 8 + size]
        if kind == b"IHDR":
            width, height, bits, colours = struct.unpack_from(">IIBB", body)
        palette = body if kind == b"PLTE" else palette
        packed += body if kind == b"IDAT" else b""
        place += size + 12
    channels = {2: 3, 3: 1, 6: 4}[colours]
    line = (width * channels * bits + 7) // 8
    raw, row, rows = zlib.decompress(packed), bytearray(line), []
    for y in range(height):
        begin = y * (line + 1)
        row = unfiltered(raw[begin], bytearray(raw[begin + 1:begin + 1 + line]), row, channels)
        if colours == 3:
            indices = [row[x * bits // 8] >> (8 - bits - x * bits % 8) & (1 << bits) - 1
                       for x in range(width)]
            rows.append([tuple(palette[3 * i:3 * i + 3]) for i in indices])
        else:
            rows.append(list(zip(row[0::channels], row[1::channels], row[2::channels])))
    return width, height, rows


class Page(html.parser.HTMLParser):
    """What a document holds: tables by id, curves by figure, images by id, scripts by id."""

    def __init__(self, text):
        super().__init__()
        self.tables, self.curves, self.images, self.scripts = {}, {}, {}, {}
        self.live, self.canvases, self.links = [], 0, []
        self.figure = self.table = self.script = self.cell = None
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.links += [value for key, value in attrs.items() if key in ("src", "href", "srcset")]
        if tag == "figure":
            self.figure = attrs.get("id")
            if "live" in attrs.get("class", "").split():
                self.live.append(self.figure)
        elif tag == "polyline":
            points = [tuple(map(float, p.split(","))) for p in attrs["points"].split()]
            self.curves.setdefault(self.figure, []).append(points)
        elif tag == "img":
            self.images[attrs["id"]] = attrs["src"]
        elif tag == "canvas":
            self.canvases += 1
        elif tag == "table" and "id" in attrs:
            self.table = self.tables.setdefault(attrs["id"], [])
        elif tag == "tr" and self.table is not None:
            self.table.append([])
        elif tag in ("td", "th") and self.table is not None:
            self.cell = ""
        elif tag == "script":
            self.script = attrs.get("id", "")

    def handle_endtag(self, tag):
        if tag == "table":
            self.table = None
        elif tag in ("td", "th") and self.table is not None and self.cell is not None:
            self.table[-1].append(self.cell)
            self.cell = None
        elif tag == "script":
            self.script = None

    def handle_data(self, data):
        if self.cell is not None:
            self.cell += data
        if self.script is not None:
            self.scripts[self.script] = self.scripts.get(self.script, "") + data


class Browser:
    def __init__(self, program, folder):
        self.program, self.folder = program, folder

    def run(self, *arguments):
        ended = subprocess.run(
            [self.program, "--headless", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu",
             "--hide-scrollbars", "--force-device-scale-factor=1", "--virtual-time-budget=5000",
             "--disable-background-networking", f"--user-data-dir={self.folder}/profile",
             *arguments], capture_output=True, check=False, timeout=120)
        assert ended.returncode == 0, ended.stderr.decode()
        return ended.stdout.decode()

    def dom(self, path):
        return Page(self.run("--dump-dom", "file://" + os.path.abspath(path)))

    def screenshot(self, path, name, height, *more):
        image = os.path.join(self.folder, name)
        self.run(f"--screenshot={image}", f"--window-size=1240,{height}", *more,
                 "file://" + os.path.abspath(path))
        with open(image, "rb") as file:
            return png_pixels(file.read())


def without_scripts(path):
    """A copy of a page in which the browser runs none."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    policy = "script-src 'unsafe-inline'"
    assert text.count(policy) == 1
    copy = path.replace(".html", "-without-scripts.html")
    with open(copy, "w", encoding="utf-8") as file:
        file.write(text.replace(policy, "script-src 'none'"))
    return copy


def printed_pages(browser, path):
    sheets = os.path.join(browser.folder, "printed.pdf")
    browser.run(f"--print-to-pdf={sheets}", "file://" + os.path.abspath(path))
    with open(sheets, "rb") as file:
        return len(re.findall(rb"/Type\s*/Page\b", file.read()))


def check_all_is_printed(browser, path):
    """On paper nothing can be unfolded, so what is folded on the screen is printed as well."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    assert "<details>" in text
    unfolded = path.replace(".html", "-unfolded.html")
    with open(unfolded, "w", encoding="utf-8") as file:
        file.write(text.replace("<details>", "<details open>"))
    pages = printed_pages(browser, path)
    assert pages == printed_pages(browser, unfolded) and pages > 2, pages
    os.remove(unfolded)


def count(picture, colour):
    return sum(row.count(colour) for row in picture[2])


def check_curves(page, data):
    """Each curve of the data stands in the page, its points where its values are."""
    seen = 0
    for chart in data["charts"]:
        if chart["kind"] != "curves":
            continue
        lines = page.curves[chart["id"]]
        assert len(lines) == len(chart["series"]), chart["id"]
        for line, series in zip(lines, chart["series"]):
            assert len(line) == len(series["x"]) == series["points"]
            for a, b in zip(range(len(line)), range(1, len(line))):
                assert line[a][0] < line[b][0]
                if series["y"][b] > series["y"][a]:
                    assert line[b][1] <= line[a][1]  # up is less on a screen
        seen += 1
    return seen


def check_masks(page, data, run):
    with open(os.path.join(run, "summary.json"), encoding="utf-8") as file:
        nnz = {p["name"]: p["nnz"] for p in json.load(file)["parameters"]}
    for layer in data["runs"][0]["layers"]:
        assert [p["step"] for p in layer["pictures"]] == [0, 18, 36, 54, 72]
        last = layer["pictures"][-1]
        kind, encoded = page.images[last["image"]].split(",")
        assert kind == "data:image/png;base64"
        width, height, rows = png_pixels(base64.b64decode(encoded))
        assert (width, height) == (last["width"], last["height"])
        if last["tile_rows"] * last["tile_columns"] == 1:
            assert [height, width] == layer["shape"]
            assert sum(row.count(DARK) for row in rows) == nnz[layer["name"]]


def check_nothing_is_fetched(browser, path, page):
    for link in page.links:
        assert link.startswith("data:"), link
    with open(path, encoding="utf-8") as file:
        text = file.read()
    assert not re.search(r"url\(|@import|fetch\(|XMLHttpRequest|WebSocket|sendBeacon", text)
    asked = []

    class Server(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)
            self.send_response(404)
            self.end_headers()

        def log_message(self, *_):
            pass

    server = http.server.HTTPServer(("127.0.0.1", 0), Server)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_port}"
    # Even what tries to is refused by the page's own policy; without that, it is asked for.
    trying = text.replace("<body>", f'<body><img id="x" src="{address}/image">'
                          f'<script>fetch("{address}/data")</script>')
    for name, content in (("refused", trying),
                          ("let", re.sub(r'<meta http-equiv="Content-Sec[^>]*>', "", trying))):
        attempt = os.path.join(browser.folder, name + ".html")
        with open(attempt, "w", encoding="utf-8") as file:
            file.write(content)
        browser.run("--dump-dom", "file://" + os.path.abspath(attempt))
        assert bool(asked) == (name == "let"), (name, asked)
        os.remove(attempt)
    server.shutdown()


ACTING = """
<script>
  var told = [], errors = [];
  window.onerror = function (message) { errors.push(message); };
  function choose(name, value) {
    var label = Array.from(document.querySelectorAll(".tools label")).find(
      function (l) { return l.textContent.startsWith(name); });
    var input = label.querySelector("select, input");
    input.value = value;
    input.dispatchEvent(new Event("input"));
    input.dispatchEvent(new Event("change"));
  }
  var steps = [STEPS];
  function tell() {
    var rows = Array.from(document.querySelectorAll("#results tbody tr"));
    told.push([
      rows.map(function (r) { return r.cells[0].textContent; }).join(" "),
      rows.filter(function (r) { return !r.hidden; }).length,
      document.querySelectorAll("canvas").length,
      getComputedStyle(document.querySelector(".of-runs")).display,
      errors.join(";")
    ].map(function (t) { return "<td>" + t + "</td>"; }).join(""));
    if (steps.length) {
      steps.shift()();
      setTimeout(tell, 300);
    } else {
      document.body.insertAdjacentHTML(
        "beforeend", '<table id="told"><tr>' + told.join("</tr><tr>") + "</tr></table>");
    }
  }
  addEventListener("load", function () { setTimeout(tell, 300); });
</script>
"""


def check_choices(browser, path):
    """Tables are sorted and filtered, and curves drawn again, as somebody chooses."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    head = 'document.querySelector("#results th").click()'
    steps = (head, head, 'choose("show runs", "s7")', 'choose("show runs", "")',
             'choose("x", "epoch")', 'choose("x", "seconds"); choose("smoothing", "0.8")',
             'choose("y", "log")', 'document.querySelector("[data-group]").click()',
             'choose("seeds", "each")')
    acting = path.replace(".html", "-acting.html")
    with open(acting, "w", encoding="utf-8") as file:
        script = ACTING.replace("STEPS", ",".join(f"function () {{ {s}; }}" for s in steps))
        file.write(text.replace("<body>", "<body>" + script))
    told = browser.dom(acting).tables["told"]
    os.remove(acting)
    assert len(told) == len(steps) + 1, told
    assert all(row[4] == "" for row in told), told
    assert len({row[2] for row in told}) == 1 and int(told[0][2]) > 3, told
    names = told[0][0].split()
    assert len(names) == 9 and sum(name.endswith("s7") for name in names) == 1
    assert told[1][0].split() == sorted(names)
    assert told[2][0].split() == sorted(names, reverse=True)
    assert [row[1] for row in told[3:5]] == ["1", "9"], told
    assert told[0][3] == "none" and told[-1][3] == "flex", told  # groups of seeds, and each run


def check_small_screen(browser, path):
    """At 420 pixels nothing but tables reaches beyond the screen, and these can be moved."""
    frame = os.path.join(browser.folder, "small.html")
    with open(frame, "w", encoding="utf-8") as file:
        file.write('<body style="margin:0"><iframe style="border:0" width="420" height="1800" '
                   f'src="{os.path.basename(path)}"></iframe>')
    width, _, rows = browser.screenshot(frame, "small.png", 1800)
    assert width == 1240
    assert all(colour == (255, 255, 255) for row in rows for colour in row[420:])
    tables = browser.run("--dump-dom", "file://" + os.path.abspath(path))
    assert tables.count('<div class="wide">') >= tables.count("<table id=")


def check_dark(browser, path):
    picture = browser.screenshot(path, "dark.png", 900, "--blink-settings=preferredColorScheme=0")
    assert count(picture, (0x15, 0x18, 0x1C)) > 1240 * 900 // 2
    light = browser.screenshot(path, "light.png", 900)
    assert count(light, (255, 255, 255)) > 1240 * 900 // 2


def repetitions(first, second, folder):
    """Nine runs of two settings, with seeds of their own."""
    runs = os.path.join(folder, "runs")
    for number in range(9):
        source = first if number < 5 else second
        run = os.path.join(runs, f"net_{os.path.basename(source)}_s{number}")
        shutil.copytree(source, run)
        config = os.path.join(run, "config.yaml")
        with open(config, encoding="utf-8") as file:
            text = file.read()
        before, train = text.split("\ntrain:\n")
        assert "\n  seed: 0\n" in train
        with open(config, "w", encoding="utf-8") as file:
            file.write(before + "\ntrain:\n" +
                       train.replace("\n  seed: 0\n", f"\n  seed: {number}\n"))
    os.makedirs(os.path.join(runs, "notes"))
    return runs


def main():
    program, chromium, folder = sys.argv[1], sys.argv[2], fresh_folder(sys.argv[3])
    browser = Browser(chromium, folder)
    first = train(program, folder, "rigl")
    second = train(program, folder, "set", "--set", "sparsity.algorithm=set")
    one, two = (os.path.join(folder, name) for name in ("one.html", "two.html"))
    lacuna(program, "report", first, "--out", one)
    lacuna(program, "report", first, second, "--out", two)
    shown = json.loads(lacuna(program, "compare", first, second, "--json"))

    still, live = browser.dom(without_scripts(one)), browser.dom(one)
    data = json.loads(still.scripts["lacuna-report"])
    assert check_curves(still, data) >= 12 and still.canvases == 0 and not still.live
    assert check_curves(live, data) == live.canvases == len(live.live)
    for page in (still, live):
        check_masks(page, data, first)
        assert f"{100 * data['results'][0]['accuracy']:.2f} %" in page.tables["results"][1]
        assert [row[0] for row in page.tables["layers-0"]] == ["layer", "fc1.weight", "fc2.weight"]
    check_nothing_is_fetched(browser, one, live)

    for page in (browser.dom(without_scripts(two)), browser.dom(two)):
        assert [row[0] for row in page.tables["results"][1:]] == [r["run"] for r in shown["runs"]]
        assert ["sparsity.algorithm", '"rigl"', '"set"'] in page.tables["differences"]

    for path in (one, without_scripts(one)):
        name = os.path.basename(path).replace(".html", ".png")
        picture = browser.screenshot(path, name, 3200)
        assert picture[:2] == (1240, 3200)
        for colour, least in ((BLUE, 800), (ORANGE, 100), (DARK, 500)):
            assert count(picture, colour) > least, (name, colour, count(picture, colour))
    check_all_is_printed(browser, two)
    nine = os.path.join(folder, "nine.html")
    lacuna(program, "report", repetitions(first, second, folder), "--out", nine)
    check_choices(browser, nine)
    check_small_screen(browser, nine)
    check_dark(browser, nine)


if __name__ == "__main__":
    main()
