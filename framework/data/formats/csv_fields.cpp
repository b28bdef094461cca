#include "lacuna/framework/data/formats/csv_fields.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <ctime>
#include <limits>
#include <system_error>

#include "lacuna/framework/config/names.h"

namespace lacuna {
namespace {

// Takes exactly `count` digits off the front.
std::optional<int> take_digits(std::string_view& text, size_t count) {
  if (text.size() < count) return std::nullopt;
  int value = 0;
  const char* const end = text.data() + count;
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (stop != end || error != std::errc() || text.front() == '-') return std::nullopt;
  text.remove_prefix(count);
  return value;
}

bool take(std::string_view& text, std::string_view any_of) {
  if (text.empty() || any_of.find(text.front()) == std::string_view::npos) return false;
  text.remove_prefix(1);
  return true;
}

std::optional<double> days_of(int year, int month, int day, double seconds) {
  const std::chrono::year_month_day date{std::chrono::year{year},
                                         std::chrono::month{static_cast<unsigned>(month)},
                                         std::chrono::day{static_cast<unsigned>(day)}};
  if (!date.ok()) return std::nullopt;
  return static_cast<double>(std::chrono::sys_days(date).time_since_epoch().count()) +
         seconds / 86400.0;
}

std::optional<double> seconds_of(int hour, int minute, double second) {
  if (hour > 23 || minute > 59 || second >= 61.0) return std::nullopt;
  return 3600.0 * hour + 60.0 * minute + second;
}

// hh:mm, hh:mm:ss or hh:mm:ss.fff, in seconds.
std::optional<double> take_time(std::string_view& text) {
  const std::optional<int> hour = take_digits(text, 2);
  if (!hour || !take(text, ":")) return std::nullopt;
  const std::optional<int> minute = take_digits(text, 2);
  if (!minute) return std::nullopt;
  double second = 0.0;
  if (take(text, ":")) {
    const std::optional<int> whole = take_digits(text, 2);
    if (!whole) return std::nullopt;
    second = *whole;
    if (take(text, ".,")) {
      double digit = 0.1;
      if (text.empty() || text.front() < '0' || text.front() > '9') return std::nullopt;
      for (; !text.empty() && text.front() >= '0' && text.front() <= '9'; digit /= 10.0) {
        second += digit * (text.front() - '0');
        text.remove_prefix(1);
      }
    }
  }
  return seconds_of(*hour, *minute, second);
}

// Z, or what the clock there is ahead by, in seconds; 0 if there is nothing.
std::optional<double> take_zone(std::string_view& text) {
  if (text.empty() || take(text, "Zz")) return 0.0;
  const double sign = text.front() == '-' ? -1.0 : 1.0;
  if (!take(text, "+-")) return std::nullopt;
  const std::optional<int> hour = take_digits(text, 2);
  take(text, ":");
  const std::optional<int> minute = hour && !text.empty() ? take_digits(text, 2) : 0;
  if (!hour || !minute) return std::nullopt;
  const std::optional<double> ahead = seconds_of(*hour, *minute, 0.0);
  return ahead ? std::optional(sign * *ahead) : std::nullopt;
}

std::optional<double> parse_iso_date(std::string_view text) {
  const std::optional<int> year = take_digits(text, 4);
  if (!year || !take(text, "-")) return std::nullopt;
  const std::optional<int> month = take_digits(text, 2);
  if (!month || !take(text, "-")) return std::nullopt;
  const std::optional<int> day = take_digits(text, 2);
  if (!day) return std::nullopt;
  if (text.empty()) return days_of(*year, *month, *day, 0.0);
  if (!take(text, "Tt ")) return std::nullopt;
  const std::optional<double> time = take_time(text);
  const std::optional<double> ahead = time ? take_zone(text) : std::nullopt;
  if (!ahead || !text.empty()) return std::nullopt;
  return days_of(*year, *month, *day, *time - *ahead);
}

}  // namespace

std::string_view trimmed_field(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

std::optional<double> parse_field(std::string_view text) {
  std::string_view digits = trimmed_field(text);
  if (digits.starts_with('+') && !digits.starts_with("+-")) digits.remove_prefix(1);
  double value = 0;
  const char* const end = digits.data() + digits.size();
  const auto [stop, error] = std::from_chars(digits.data(), end, value);
  if (digits.empty() || stop != end || error == std::errc::invalid_argument) return std::nullopt;
  if (error == std::errc::result_out_of_range) {  // too large, or so small that it is 0
    return std::abs(std::strtod(std::string(digits).c_str(), nullptr)) < 1.0
               ? 0.0
               : std::numeric_limits<double>::infinity();
  }
  return std::abs(value) > std::numeric_limits<float>::max()
             ? std::numeric_limits<double>::infinity()
             : value;
}

bool is_missing_field(std::string_view text) {
  static constexpr std::array<std::string_view, 10> kWords = {"",    "na",   "n/a",  "#n/a", "nan",
                                                              "nat", "null", "none", "<na>", "?"};
  const std::string_view field = trimmed_field(text);
  return field.size() <= 4 && std::ranges::find(kWords, to_lower(field)) != kWords.end();
}

std::optional<double> parse_date(std::string_view text, const std::string& format) {
  const std::string_view field = trimmed_field(text);
  if (format.empty()) return parse_iso_date(field);
  // std::get_time takes up to four digits for %y.
  static const locale_t kClassic = newlocale(LC_ALL_MASK, "C", nullptr);
  const std::string date(field);
  std::tm time{};
  time.tm_mday = 0;
  const char* const end = strptime_l(date.c_str(), format.c_str(), &time, kClassic);
  if (end != date.c_str() + date.size()) return std::nullopt;
  const std::optional<double> seconds = seconds_of(time.tm_hour, time.tm_min, time.tm_sec);
  if (!seconds) return std::nullopt;
  return days_of(time.tm_year + 1900, time.tm_mon + 1, time.tm_mday, *seconds);
}

bool is_date_format(const std::string& format) {
  std::string letters;
  for (size_t i = 0; i < format.size(); ++i) {
    if (format[i] != '%') continue;
    if (++i == format.size()) return false;
    letters += format[i];
  }
  const auto has = [&](const char* any_of) {
    return letters.find_first_of(any_of) != std::string::npos;
  };
  return has("Yy") && has("mbB") && has("d") &&
         letters.find_first_not_of("YymbBdHMS") == std::string::npos;
}

}  // namespace lacuna
