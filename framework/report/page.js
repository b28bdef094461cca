// Curves that can be zoomed into, read under the pointer, smoothed, and shown by step, epoch or
// second; runs of one setting as a mean with its band; tables that can be sorted and filtered. What
// is drawn is the page's own data; without scripts the same curves stand there as SVG.
(function () {
  "use strict";
  var data = JSON.parse(document.getElementById("lacuna-report").textContent);
  var root = document.documentElement;
  var isOfMany = data.runs.length > 1;
  var state = { x: "step", smoothing: 0, scale: "auto", off: {}, groupsOff: {}, filtered: {} };

  function all(selector, within) {
    return Array.prototype.slice.call((within || document).querySelectorAll(selector));
  }
  function make(tag, attributes, text) {
    var element = document.createElement(tag);
    Object.keys(attributes || {}).forEach(function (key) { element.setAttribute(key, attributes[key]); });
    if (text) element.textContent = text;
    return element;
  }
  function colour(name) { return getComputedStyle(root).getPropertyValue("--" + name).trim(); }
  function isGrouped() { return root.classList.contains("grouped"); }
  function isRunOff(run) { return state.off[run] || state.filtered[run]; }

  // Numbers in words.
  function text(unit) {
    return function (value) {
      if (value === null || value === undefined) return "–";
      return unit === "percent" ? +(100 * value).toPrecision(6) + " %" : String(+value.toPrecision(6));
    };
  }
  function axisValues(unit) {
    return function (plot, ticks) {
      return ticks.map(function (tick) { return tick === null ? "" : text(unit)(tick); });
    };
  }

  // Distances of lines where whole numbers are counted: steps, rows, positions.
  var whole = [];
  for (var power = 1; power < 1e15; power *= 10) whole.push(power, 2 * power, 5 * power);

  // Of a logarithmic axis the lines that have a number.
  function labelled(plot, ticks, axis, space, stride) {
    return plot.axes[axis].filter(plot, ticks, axis, space, stride);
  }

  // Values that are the same but for rounding are shown as such.
  function range(chart) {
    var most = chart.unit === "percent" ? 1.05 : Infinity;
    return function (plot, low, high) {
      if (low === null || low === 0 && high === 0) return [0, 1];
      if (high - low <= 1e-9 * Math.abs(high) && high > 0) return [0, Math.min(most, 1.6 * high)];
      var isFromZero = chart.from_zero || low >= 0 && low < 0.5 * high;
      return uPlot.rangeNum(isFromZero ? 0 : low, high, 0.1, true);
    };
  }

  // From steps to what the axis shows.
  function secondsAt(run, step) {
    var x = run.seconds.x, y = run.seconds.y, n = x.length, i = 0;
    if (n === 0) return null;
    while (i < n && x[i] < step) ++i;
    if (i === n) return n > 1 ? y[n - 1] + (step - x[n - 1]) * (y[n - 1] - y[n - 2]) / (x[n - 1] - x[n - 2]) : y[0];
    var x0 = i === 0 ? 0 : x[i - 1], y0 = i === 0 ? 0 : y[i - 1];
    return x[i] === x0 ? y[i] : y0 + (step - x0) / (x[i] - x0) * (y[i] - y0);
  }
  function shownX(steps, runs) {
    if (state.x === "step") return steps;
    return steps.map(function (step) {
      var sum = 0;
      runs.forEach(function (run) {
        run = data.runs[run];
        sum += state.x === "epoch" ? step * run.epochs_of_a_step : secondsAt(run, step);
      });
      return sum / runs.length;
    });
  }
  function canShow(x) {
    return data.runs.every(function (run) { return x === "epoch" ? run.epochs_of_a_step > 0 : run.seconds.x.length > 1; });
  }

  // A mean that forgets, begun without a bias.
  function smoothed(values) {
    var weight = state.smoothing, sum = 0, norm = 0;
    if (weight === 0) return values;
    return values.map(function (value) {
      sum = weight * sum + (1 - weight) * value;
      norm = weight * norm + (1 - weight);
      return sum / norm;
    });
  }

  // Curves of a chart as they are shown now: {label, x, y, low, high, colour, dash}.
  function curvesOf(chart) {
    var layer = /^layer-(\d+)-/.exec(chart.id);
    if (isGrouped() && chart.bands) {
      return chart.bands.filter(function (band) {
        var group = data.groups.findIndex(function (g) { return g.label === band.label; });
        return !state.groupsOff[group] && !band.runs.every(function (run) { return state.filtered[run]; });
      }).map(function (band) {
        var mean = smoothed(band.mean), spread = smoothed(band.spread), isOne = band.runs.length === 1;
        var isPositive = mean.every(function (m) { return m >= 0; });
        return {
          label: band.label, x: shownX(band.x, band.runs), y: mean, colour: band.colour_index, dash: band.dash,
          low: isOne ? null : mean.map(function (m, i) { return isPositive ? Math.max(0, m - spread[i]) : m - spread[i]; }),
          high: isOne ? null : mean.map(function (m, i) { return m + spread[i]; })
        };
      });
    }
    return chart.series.filter(function (s) { return layer || !isOfMany || !isRunOff(s.run); }).map(function (s) {
      return {
        label: s.label, x: shownX(s.x, [layer ? +layer[1] : s.run]), y: smoothed(s.y), colour: s.colour_index, dash: s.dash
      };
    });
  }

  // The value of a curve next to the pointer.
  function nearest(values, index) {
    for (var i = 0; i < values.length; ++i) {
      if (values[index - i] != null) return index - i;
      if (values[index + i] != null) return index + i;
    }
    return index;
  }
  function hints(chart, say) {
    var box, focused = null;
    return {
      hooks: {
        init: function (plot) { box = plot.over.appendChild(make("div", { "class": "hint" })); },
        setSeries: function (plot, series) { focused = series; },
        setCursor: function (plot) {
          var index = plot.cursor.idx;
          if (index == null || focused == null || plot.series[focused].isEdge) { box.style.display = "none"; return; }
          var values = plot.data[focused], at = nearest(values, index);
          box.textContent = plot.series[focused].label + ": " + say(values[at]) + " at " + text("plain")(plot.data[0][at]);
          box.style.display = "block";
          var isRight = plot.cursor.left > plot.over.clientWidth / 2;
          box.style.left = isRight ? "" : plot.cursor.left + 12 + "px";
          box.style.right = isRight ? plot.over.clientWidth - plot.cursor.left + 12 + "px" : "";
          box.style.top = Math.max(0, plot.cursor.top - 30) + "px";
        }
      }
    };
  }

  function draw(chart, figure) {
    var place = figure.querySelector(".plot");
    if (figure.plot || !place || chart.kind !== "curves") return;
    var box = figure.getBoundingClientRect();
    if (box.width < 50) return; // not shown yet
    var curves = curvesOf(chart), tables = [], series = [], bands = [];
    var isLog = state.scale === "auto" ? chart.scale === "log" : state.scale === "log";
    var say = text(chart.unit), isStep = chart.x_label === "step";
    curves.forEach(function (curve) {
      var stroke = colour("c" + curve.colour), least = Infinity;
      if (isLog) curve.y.forEach(function (v) { if (v > 0) least = Math.min(least, v); });
      function shown(v) { return isLog && v <= 0 ? null : v; }
      var table = [curve.x, isLog ? curve.y.map(shown) : curve.y];
      series.push({
        label: curve.label, stroke: stroke, width: 1.8, dash: curve.dash ? curve.dash.split(" ").map(Number) : undefined,
        spanGaps: true, points: { show: curve.x.length <= 12, size: 5, fill: stroke, stroke: stroke },
        value: function (plot, value) { return say(value); }
      });
      if (curve.low) {
        table.push(curve.high.map(shown), curve.low.map(function (v) { return isLog ? Math.max(v, least / 2) : v; }));
        [0, 1].forEach(function () {
          series.push({ label: curve.label, stroke: "transparent", width: 0, spanGaps: true, points: { show: false }, isEdge: true });
        });
        bands.push({ series: [series.length - 1, series.length], fill: stroke + (curves.length > 6 ? "14" : "2e") });
      }
      tables.push(table);
    });
    var grid = { stroke: colour("grid"), width: 1 };
    var options = {
      width: Math.floor(box.width),
      height: Math.round(box.width * (box.width < 420 ? 0.66 : 0.5)),
      cursor: { drag: { x: true, y: false }, focus: { prox: 24 } },
      focus: { alpha: series.length > 1 ? 0.3 : 1 },
      legend: { show: series.length > 0 && series.length <= 8 && !(isOfMany && /^chart-/.test(chart.id)) },
      scales: { x: { time: false }, y: { distr: isLog ? 3 : 1, range: isLog ? undefined : range(chart) } },
      series: [{ label: isStep ? state.x : chart.x_label }].concat(series),
      bands: bands,
      plugins: [hints(chart, say)],
      axes: [
        { stroke: colour("soft"), grid: { show: false }, ticks: { stroke: colour("axis") }, label: isStep ? state.x : chart.x_label,
          labelSize: 16, labelGap: 0, labelFont: "12px sans-serif", size: 34, incrs: isStep && state.x !== "step" ? undefined : whole },
        { stroke: colour("soft"), grid: isLog ? { stroke: grid.stroke, width: 1, filter: labelled } : grid, ticks: { show: false }, size: 58,
          label: chart.y_label, labelSize: 16, labelGap: 0, labelFont: "12px sans-serif",
          incrs: chart.unit === "count" ? whole : undefined, values: axisValues(chart.unit) }
      ]
    };
    if (bands.length === 0) delete options.bands;
    figure.classList.add("live");
    figure.plot = new uPlot(options, tables.length ? uPlot.join(tables) : [[], []].slice(0, 1), place);
  }

  function figureOf(chart) { return document.getElementById(chart.id); }
  function drawAll() {
    data.charts.forEach(function (chart) {
      var figure = figureOf(chart);
      if (figure) draw(chart, figure);
    });
  }
  function redraw() {
    data.charts.forEach(function (chart) {
      var figure = figureOf(chart);
      if (!figure || !figure.plot) return;
      figure.plot.destroy();
      figure.plot = null;
    });
    all(".point[data-run]").forEach(function (point) {
      point.classList.toggle("off", !!isRunOff(point.getAttribute("data-run")));
    });
    drawAll();
  }
  var waiting = null;
  function redrawSoon() {
    clearTimeout(waiting);
    waiting = setTimeout(redraw, 120);
  }

  // Choices above the curves.
  function choice(tools, label, values, onChange) {
    var select = make("select");
    values.forEach(function (value) { select.appendChild(make("option", { value: value[0] }, value[1])); });
    select.addEventListener("change", function () { onChange(select.value); });
    tools.appendChild(make("label", {}, label)).appendChild(select);
  }
  function addTools() {
    var heading = document.getElementById("curves");
    if (!heading) return;
    var tools = make("div", { "class": "tools" });
    var xs = [["step", "step"], ["epoch", "epoch"], ["seconds", "seconds of training"]].filter(function (x) {
      return x[0] === "step" || canShow(x[0]);
    });
    if (xs.length > 1) choice(tools, "x:", xs, function (x) { state.x = x; redraw(); });
    choice(tools, "y:", [["auto", "as it fits"], ["linear", "linear"], ["log", "logarithmic"]], function (scale) { state.scale = scale; redraw(); });
    var slider = make("input", { type: "range", min: 0, max: 0.98, step: 0.02, value: 0, "aria-label": "smoothing" });
    slider.addEventListener("input", function () { state.smoothing = +slider.value; redrawSoon(); });
    tools.appendChild(make("label", {}, "smoothing:")).appendChild(slider);
    if (isGrouped()) {
      choice(tools, "seeds:", [["mean", "mean and band"], ["each", "each run"]], function (seeds) {
        root.classList.toggle("grouped", seeds === "mean");
        redraw();
      });
    }
    heading.parentNode.insertBefore(tools, heading.nextSibling);
  }

  // A click on a name hides its curve, a double click shows it alone.
  function addKeys(selector, attribute, off, count) {
    var entries = all(selector + " [" + attribute + "]");
    function show() {
      entries.forEach(function (entry) { entry.classList.toggle("off", !!off[entry.getAttribute(attribute)]); });
      redrawSoon();
    }
    entries.forEach(function (entry) {
      var place = entry.getAttribute(attribute);
      entry.addEventListener("click", function () { off[place] = !off[place]; show(); });
      entry.addEventListener("dblclick", function () {
        var isAlone = entries.every(function (other) { return other === entry || off[other.getAttribute(attribute)]; });
        for (var i = 0; i < count; ++i) off[i] = !isAlone && String(i) !== place;
        show();
      });
    });
  }

  // Tables.
  function sortable(cell) {
    var units = { "kB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12 };
    var found = /^(-?[\d,]*\.?\d+(?:e[+-]?\d+)?)(?: (kB|MB|GB|TB))?/.exec(cell);
    return found ? parseFloat(found[1].replace(/,/g, "")) * (units[found[2]] || 1) : null;
  }
  function compare(a, b) {
    var x = sortable(a), y = sortable(b);
    if (x !== null && y !== null && x !== y) return x - y;
    if ((x === null) !== (y === null)) return x === null ? 1 : -1;
    return a < b ? -1 : a > b ? 1 : 0;
  }
  function addSorting(table) {
    var heads = all("thead th", table), body = table.tBodies[0];
    if (!body || body.rows.length < 2) return;
    table.classList.add("sortable");
    heads.forEach(function (head, column) {
      function sort() {
        var isUp = head.getAttribute("aria-sort") !== "ascending";
        heads.forEach(function (other) { other.removeAttribute("aria-sort"); });
        head.setAttribute("aria-sort", isUp ? "ascending" : "descending");
        var rows = Array.prototype.slice.call(body.rows).map(function (row) { return [row.cells[column].textContent, row]; });
        rows.sort(function (a, b) {
          var isNone = (a[0] === "-" || a[0] === "") - (b[0] === "-" || b[0] === "");
          return isNone !== 0 ? isNone : isUp ? compare(a[0], b[0]) : compare(b[0], a[0]);
        });
        rows.forEach(function (row) { body.appendChild(row[1]); });
      }
      head.tabIndex = 0;
      head.addEventListener("click", sort);
      head.addEventListener("keydown", function (event) { if (event.key === "Enter") sort(); });
    });
  }
  function addFilter() {
    var table = document.getElementById("results"), rows = all("tr[data-run]");
    if (!table || data.runs.length <= 8) return;
    var words = {}; // of each run, in whatever table
    data.results.forEach(function (result) {
      data.runs.forEach(function (run, i) {
        if (run.folder === result.folder) words[i] = (result.task || "").toLowerCase() + " ";
      });
    });
    rows.forEach(function (row) {
      var run = row.getAttribute("data-run"), heads = all("thead th", row.parentNode.parentNode);
      words[run] = (words[run] || "") + all("td", row).map(function (cell, i) {
        return (heads[i].textContent + "=" + cell.textContent + " " + cell.textContent).toLowerCase();
      }).join(" ") + " ";
    });
    var tools = make("div", { "class": "tools" });
    var input = make("input", { type: "search", placeholder: "words of a name, state or setting" });
    var count = make("span");
    tools.appendChild(make("label", {}, "show runs with:")).appendChild(input);
    tools.appendChild(count);
    input.addEventListener("input", function () {
      var wanted = input.value.toLowerCase().split(/\s+/).filter(Boolean), shown = 0;
      data.runs.forEach(function (run, i) {
        var has = wanted.every(function (word) { return (words[i] || "").indexOf(word) >= 0; });
        state.filtered[i] = !has;
        shown += has ? 1 : 0;
      });
      rows.forEach(function (row) { row.hidden = !!state.filtered[row.getAttribute("data-run")]; });
      all(".key.above [data-run]").forEach(function (entry) { entry.hidden = !!state.filtered[entry.getAttribute("data-run")]; });
      count.textContent = wanted.length ? shown + " of " + data.runs.length + " runs" : "";
      redrawSoon();
    });
    var place = all("h2").find(function (heading) { return heading.textContent === "Results"; });
    place.parentNode.insertBefore(tools, place.nextSibling);
  }

  root.classList.add("scripted");
  addTools();
  addKeys(".of-runs", "data-run", state.off, data.runs.length);
  addKeys(".of-groups", "data-group", state.groupsOff, data.groups.length);
  all("table").forEach(function (table) { if (!table.classList.contains("confusion")) addSorting(table); });
  addFilter();
  drawAll();
  all("details").forEach(function (details) { details.addEventListener("toggle", drawAll); });
  window.addEventListener("resize", redrawSoon);
  if (window.matchMedia) {
    var dark = window.matchMedia("(prefers-color-scheme: dark)");
    if (dark.addEventListener) dark.addEventListener("change", redraw);
  }
})();
