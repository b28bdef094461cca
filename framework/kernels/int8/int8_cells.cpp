#include "lacuna/framework/kernels/int8/int8_cells.hpp"

#include <algorithm>
#include <utility>

#include "lacuna/framework/kernels/int8/int8_groups.hpp"
#include "lacuna/framework/kernels/int8/int8_kernels.hpp"

namespace lacuna {
namespace {

using Columns = std::span<const uint32_t>;

constexpr int64_t kMostQuads = 1 << 16;

// A row's part of an array of nonzeros.
template <class T>
std::span<const T> of_row(std::span<const int64_t> row_begin, std::span<const T> all, int64_t row) {
  const int64_t begin = row_begin[static_cast<size_t>(row)];
  return all.subspan(static_cast<size_t>(begin),
                     static_cast<size_t>(row_begin[static_cast<size_t>(row) + 1] - begin));
}

// The end of the rows behind `row` that have its columns.
int64_t end_of_run(int64_t row, int64_t end, std::span<const int64_t> row_begin,
                   Columns column_of) {
  const Columns own = of_row(row_begin, column_of, row);
  int64_t next = row + 1;
  while (next < end && std::ranges::equal(of_row(row_begin, column_of, next), own)) ++next;
  return next;
}

int64_t quads_in(Columns columns) {
  int64_t quads = 0;
  for (size_t i = 0; i < columns.size(); ++i) {
    quads += i == 0 || columns[i] / kInt8Group != columns[i - 1] / kInt8Group ? 1 : 0;
  }
  return quads;
}

// The most quads that four columns in a row are from.
int64_t sources_in(Columns columns) {
  int64_t most = 0;
  for (size_t i = 0; i < columns.size(); i += kInt8Group) {
    const size_t count = std::min<size_t>(columns.size() - i, kInt8Group);
    most = std::max(most, quads_in(columns.subspan(i, count)));
  }
  return most;
}

// Times in units of four rows times a line, which is 16 cycles for 64 examples (Zen 4 with
// AVX-512): of a source of a gathered line, and of a row's group of 1 × 4. Where words are split,
// more lines are than words of single rows, and cells are not faster than groups of as many words.
constexpr double kSourceTime = 0.7, kGroupTime = 0.27;
constexpr double kSplitSourceTime = 0.25, kSplitGroupTime = 0.24;  // AVX2, on Zen 5 and 4
// Widening bytes to floats adds 5 % to the time of a float32 product.
constexpr double kWidenedTime = 1.05;

// The time of rows that have the same columns.
struct RunTime {
  double quads = 0.0, gathered = 0.0;  // with lines that are quads, and with gathered ones
};

RunTime time_of(Columns columns, int64_t rows, bool splits_words) {
  const auto fours = static_cast<double>((rows + kInt8CellRows - 1) / kInt8CellRows);
  const auto lines = static_cast<double>(int8_quads(std::ssize(columns)));
  const double gathering =
      (splits_words ? kSplitSourceTime : kSourceTime) * static_cast<double>(sources_in(columns));
  return {.quads = static_cast<double>(quads_in(columns)) * fours,
          .gathered = lines * (fours + gathering)};
}

bool is_gathered(Columns columns, int64_t rows, bool splits_words) {
  const RunTime time = time_of(columns, rows, splits_words);
  return time.gathered < time.quads;
}

int32_t word_of(const int8_t (&weights)[kInt8Group]) {
  uint32_t word = 0;
  for (int i = 0; i < kInt8Group; ++i) {
    word |= uint32_t{static_cast<uint8_t>(weights[i])} << (8 * i);
  }
  return static_cast<int32_t>(word);
}

// What a line holds: for each of its four inputs, its place among the columns of the run, or -1.
struct Line {
  int64_t of_input[kInt8Group] = {-1, -1, -1, -1};
};

std::vector<Line> lines_of(Columns columns, bool gathered) {
  std::vector<Line> lines;
  for (size_t i = 0; i < columns.size(); ++i) {
    const bool begins = gathered ? i % kInt8Group == 0
                                 : i == 0 || columns[i] / kInt8Group != columns[i - 1] / kInt8Group;
    if (begins) lines.emplace_back();
    lines.back().of_input[gathered ? i % kInt8Group : columns[i] % kInt8Group] =
        static_cast<int64_t>(i);
  }
  return lines;
}

// Where the inputs of a line come from, as many sources as the run has for each.
void append_sources(const Line& line, Columns columns, int64_t count,
                    std::vector<Int8Source>& all) {
  const size_t first = all.size();
  for (int i = 0; i < kInt8Group; ++i) {
    if (line.of_input[i] < 0) continue;
    const uint32_t column = columns[static_cast<size_t>(line.of_input[i])];
    const auto quad = static_cast<uint16_t>(column / kInt8Group);
    auto source = std::ranges::find(all.begin() + static_cast<int64_t>(first), all.end(), quad,
                                    &Int8Source::quad);
    if (source == all.end()) source = all.insert(source, {.quad = quad});
    source->places[static_cast<size_t>(i)] = static_cast<uint8_t>(column % kInt8Group);
  }
  while (all.size() < first + static_cast<size_t>(count)) {
    all.push_back({.quad = all[first].quad});
  }
}

class CellsBuilder {
 public:
  CellsBuilder(int64_t first_row, std::span<const int64_t> row_begin, Columns column_of,
               std::span<const int8_t> values, bool splits_words)
      : first_row_(first_row),
        row_begin_(row_begin),
        column_of_(column_of),
        values_(values),
        splits_words_(splits_words) {}

  void add(int64_t row, int64_t end) {
    const Columns columns = of_row(row_begin_, column_of_, row);
    const bool gathered = is_gathered(columns, end - row, splits_words_);
    const std::vector<Line> lines = lines_of(columns, gathered);
    if (!splits_words_) {
      append(row, end, lines, columns, gathered);
      return;
    }
    // The fewer rows a run has, the fewer of its lines must be split.
    const int64_t most = gathered ? 4 * kInt8CellRows : kInt8CellRows;
    for (; row < end; row += most) add_split(row, std::min(row + most, end), lines, gathered);
  }

  Int8Cells take() { return std::move(cells_); }

 private:
  // Lines that a row needs twice are there twice: with even inputs, and with odd ones.
  void add_split(int64_t row, int64_t end, const std::vector<Line>& lines, bool gathered) {
    std::vector<Line> split;
    for (Line line : lines) {
      if (gathered) line = paired(line, row, end);
      if (fits(line, row, end)) {
        split.push_back(line);
        continue;
      }
      const auto& of = line.of_input;
      split.push_back({{of[0], -1, of[2], -1}});
      split.push_back({{-1, of[1], -1, of[3]}});
    }
    append(row, end, split, of_row(row_begin_, column_of_, row), gathered);
  }
  // The inputs of a gathered line may stand in any order. The first order whose pairs fit 16 bits
  // is taken: for 2:4 in groups of eight rows, 3 % of the lines are then split, not 14 %.
  Line paired(const Line& line, int64_t row, int64_t end) const {
    const auto& of = line.of_input;
    for (const Line& other :
         {line, Line{{of[0], of[2], of[1], of[3]}}, Line{{of[0], of[3], of[1], of[2]}}}) {
      if (fits(other, row, end)) return other;
    }
    return line;
  }
  int32_t word(const Line& line, int64_t row) const {
    const std::span<const int8_t> own = of_row(row_begin_, values_, row);
    int8_t weights[kInt8Group] = {};
    for (int i = 0; i < kInt8Group; ++i) {
      if (line.of_input[i] >= 0) weights[i] = own[static_cast<size_t>(line.of_input[i])];
    }
    return word_of(weights);
  }
  bool fits(const Line& line, int64_t row, int64_t end) const {
    for (; row < end; ++row) {
      if (!internal::int8_word_fits_pairs(word(line, row))) return false;
    }
    return true;
  }
  void append(int64_t row, int64_t end, const std::vector<Line>& lines, Columns columns,
              bool gathered) {
    cells_.runs.push_back({.first_row = row - first_row_,
                           .rows = end - row,
                           .first_line = static_cast<int64_t>(cells_.quads.size()),
                           .lines = static_cast<int64_t>(lines.size()),
                           .first_source = static_cast<int64_t>(cells_.sources.size()),
                           .sources = gathered ? sources_in(columns) : 0,
                           .first_word = static_cast<int64_t>(cells_.words.size())});
    for (const Line& line : lines) {
      if (gathered) {
        append_sources(line, columns, cells_.runs.back().sources, cells_.sources);
      } else {
        const int64_t any = *std::ranges::max_element(line.of_input);
        cells_.quads.push_back(
            static_cast<uint16_t>(columns[static_cast<size_t>(any)] / kInt8Group));
      }
    }
    for (int64_t four = row; four < end; four += kInt8CellRows) {
      for (const Line& line : lines) {
        for (int64_t r = four; r < four + kInt8CellRows; ++r) {
          cells_.words.push_back(r < end ? word(line, r) : 0);
        }
      }
    }
  }

  int64_t first_row_;
  std::span<const int64_t> row_begin_;
  Columns column_of_;
  std::span<const int8_t> values_;
  bool splits_words_;
  Int8Cells cells_;
};

// The columns of a line's inputs, -1 where it has none.
struct LineColumns {
  int64_t of_input[kInt8Group] = {-1, -1, -1, -1};
};

LineColumns columns_of_line(const Int8Cells& cells, const Int8CellRun& run, int64_t line) {
  LineColumns columns;
  for (int64_t s = 0; s < run.sources; ++s) {
    const Int8Source& source =
        cells.sources[static_cast<size_t>(run.first_source + line * run.sources + s)];
    for (int i = 0; i < kInt8Group; ++i) {
      const int64_t place = source.places[static_cast<size_t>(i)];
      if (place < kInt8Group) columns.of_input[i] = source.quad * kInt8Group + place;
    }
  }
  if (run.sources > 0) return columns;
  for (int i = 0; i < kInt8Group; ++i) {
    columns.of_input[i] = cells.quads[static_cast<size_t>(run.first_line + line)] * kInt8Group + i;
  }
  return columns;
}

struct Weight {
  uint32_t column;
  int8_t value;
};

std::vector<Weight> weights_of_row(const Int8Cells& cells, const Int8CellRun& run, int64_t row) {
  std::vector<Weight> weights;
  const int64_t four = row / kInt8CellRows;
  for (int64_t line = 0; line < run.lines; ++line) {
    const LineColumns columns = columns_of_line(cells, run, line);
    const auto word = static_cast<uint32_t>(cells.words[static_cast<size_t>(
        run.first_word + (four * run.lines + line) * kInt8CellRows + row % kInt8CellRows)]);
    for (int i = 0; i < kInt8Group; ++i) {
      const auto value = static_cast<int8_t>(word >> (8 * i));
      if (value != 0) weights.push_back({static_cast<uint32_t>(columns.of_input[i]), value});
    }
  }
  std::ranges::sort(weights, {}, &Weight::column);
  return weights;
}

}  // namespace

Int8Form internal::int8_form_for(const Int8Kernels& kernels, int64_t rows, int64_t columns,
                                 std::span<const int64_t> row_begin, Columns column_of) {
  double cells = 0.0;
  int64_t groups = 0, most = 0;
  bool gathers = false, may_be_cells = int8_quads(columns) <= kMostQuads;
  for (int64_t row = 0; row < rows;) {
    const int64_t end = end_of_run(row, rows, row_begin, column_of);
    may_be_cells = may_be_cells && (end == rows || (end - row) % kInt8CellRows == 0);
    const Columns own = of_row(row_begin, column_of, row);
    const RunTime time = time_of(own, end - row, kernels.splits_words);
    gathers = gathers || time.gathered < time.quads;
    cells += std::min(time.quads, time.gathered);
    groups += quads_in(own) * (end - row);
    most = std::max<int64_t>(most, std::ssize(own));
    row = end;
  }
  const double group_time = kernels.splits_words ? kSplitGroupTime : kGroupTime;
  const double of_groups = group_time * static_cast<double>(groups);
  const double of_floats = group_time / kernels.group_nonzeros *
                           static_cast<double>(row_begin[static_cast<size_t>(rows)] - row_begin[0]);
  may_be_cells = may_be_cells && cells < of_groups;
  const bool is_slow = kWidenedTime * of_floats < (may_be_cells ? cells : of_groups);
  if (is_slow && most <= kMostInt8Floats) return Int8Form::Floats;
  if (!may_be_cells) return Int8Form::Groups;
  return gathers ? Int8Form::GatheredCells : Int8Form::Cells;
}

int64_t Int8Cells::gathered_lines() const {
  int64_t most = 0;
  for (const Int8CellRun& run : runs) most = std::max(most, run.sources > 0 ? run.lines : 0);
  return most;
}

int64_t Int8Cells::bytes() const {
  return static_cast<int64_t>(runs.size() * sizeof(Int8CellRun) + quads.size() * sizeof(uint16_t) +
                              sources.size() * sizeof(Int8Source) + words.size() * sizeof(int32_t));
}

Int8Cells internal::int8_cells(int64_t first_row, int64_t end_row,
                               std::span<const int64_t> row_begin, Columns column_of,
                               std::span<const int8_t> values, bool splits_words) {
  CellsBuilder builder(first_row, row_begin, column_of, values, splits_words);
  for (int64_t row = first_row; row < end_row;) {
    const int64_t end = end_of_run(row, end_row, row_begin, column_of);
    builder.add(row, end);
    row = end;
  }
  return builder.take();
}

internal::Int8Groups internal::int8_groups(const Int8Cells& cells) {
  std::vector<int64_t> row_begin{0};
  std::vector<uint32_t> column_of;
  std::vector<int8_t> values;
  for (const Int8CellRun& run : cells.runs) {
    for (int64_t row = 0; row < run.rows; ++row) {
      for (const Weight& weight : weights_of_row(cells, run, row)) {
        column_of.push_back(weight.column);
        values.push_back(weight.value);
      }
      row_begin.push_back(static_cast<int64_t>(column_of.size()));
    }
  }
  return int8_groups(static_cast<int64_t>(row_begin.size()) - 1, row_begin, column_of, values);
}

}  // namespace lacuna
