// Curves that can be zoomed into (drag; double click to go back) and read under the cursor. What is
// drawn is the page's own data; without scripts the same curves stand there as SVG.
(function () {
  "use strict";
  var data = JSON.parse(document.getElementById("lacuna-report").textContent);
  var root = document.documentElement;

  function text(unit) {
    return function (value) {
      if (value === null || value === undefined) return "–";
      return unit === "percent" ? +(100 * value).toPrecision(6) + " %" : String(+value.toPrecision(6));
    };
  }

  function axisValues(unit) {
    return function (plot, ticks) {
      return ticks.map(function (tick) {
        return tick === null ? "" : text(unit)(tick);
      });
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

  function draw(chart, figure) {
    var place = figure.querySelector(".plot");
    if (figure.classList.contains("live") || !place || chart.kind !== "curves") return;
    var box = figure.getBoundingClientRect();
    if (box.width < 50) return; // not shown yet
    var table = uPlot.join(chart.series.map(function (s) { return [s.x, s.y]; }));
    var say = text(chart.unit);
    var options = {
      width: Math.floor(box.width),
      height: Math.round(box.width * (box.width < 420 ? 0.6 : 0.48)),
      cursor: { drag: { x: true, y: false } },
      scales: { x: { time: false }, y: { distr: chart.scale === "log" ? 3 : 1, range: chart.scale === "log" ? undefined : range(chart) } },
      series: [{ label: chart.x_label }].concat(chart.series.map(function (s) {
        return {
          label: s.label, stroke: s.colour, width: 1.8, dash: s.dashed ? [5, 4] : undefined,
          spanGaps: true, points: { show: s.x.length <= 12 },
          value: function (plot, value) { return say(value); }
        };
      })),
      axes: [
        { stroke: "#444", grid: { show: false }, ticks: { stroke: "#777" }, incrs: whole },
        { stroke: "#444", grid: chart.scale === "log" ? { stroke: "#e4e4e4", filter: labelled } : { stroke: "#e4e4e4" }, ticks: { show: false }, size: 64,
          incrs: chart.unit === "count" ? whole : undefined, values: axisValues(chart.unit) }
      ]
    };
    figure.classList.add("live");
    figure.plot = new uPlot(options, table, place);
  }

  function drawAll() {
    data.charts.forEach(function (chart) {
      var figure = document.getElementById(chart.id);
      if (figure) draw(chart, figure);
    });
  }

  root.classList.add("scripted");
  drawAll();
  Array.prototype.forEach.call(document.querySelectorAll("details"), function (details) {
    details.addEventListener("toggle", drawAll);
  });
  var waiting = null;
  window.addEventListener("resize", function () {
    clearTimeout(waiting);
    waiting = setTimeout(function () {
      data.charts.forEach(function (chart) {
        var figure = document.getElementById(chart.id);
        if (!figure || !figure.plot) return;
        var width = Math.floor(figure.getBoundingClientRect().width);
        if (width >= 50) figure.plot.setSize({ width: width, height: figure.plot.height });
      });
    }, 150);
  });
})();
