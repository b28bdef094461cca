#include "lacuna/framework/model/expression.hpp"

#include <fmt/core.h>

#include <charconv>
#include <cmath>

#include "lacuna/framework/core/error.h"

namespace lacuna {

bool begins_name(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

bool is_name_character(char c) { return begins_name(c) || (c >= '0' && c <= '9'); }

namespace {

constexpr int kMaxDepth = 50;  // of parentheses and signs

// A recursive descent: sum = product {(+|-) product}, product = factor {(*|/) factor}.
class Parser {
 public:
  Parser(std::string_view text, const std::function<Number(const std::string&)>& lookup)
      : text_(text), lookup_(lookup) {}

  Number parse() {
    const Number value = sum();
    if (next() != '\0') fail(fmt::format("unexpected '{}'", rest()));
    return value;
  }

 private:
  [[noreturn]] void fail(const std::string& problem) const {
    throw ConfigError(fmt::format("in the expression '$({})': {}", shortened(text_), problem));
  }

  // As much as a message can show.
  static std::string shortened(std::string_view text) {
    constexpr size_t kMost = 200;
    if (text.size() <= kMost) return std::string(text);
    return fmt::format("{}… ({} characters)", text.substr(0, kMost), text.size());
  }

  std::string rest() const { return shortened(text_.substr(at_)); }

  char next() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }

  Number sum() {
    Number value = product();
    for (char sign = next(); sign == '+' || sign == '-'; sign = next()) {
      ++at_;
      value = combine(value, sign, product());
    }
    return value;
  }

  Number product() {
    Number value = factor();
    for (char sign = next(); sign == '*' || sign == '/'; sign = next()) {
      ++at_;
      value = combine(value, sign, factor());
    }
    return value;
  }

  Number factor() {
    if (++depth_ > kMaxDepth) fail(fmt::format("nests deeper than {}", kMaxDepth));
    const Number value = unnested_factor();
    --depth_;
    return value;
  }

  Number unnested_factor() {
    const char c = next();
    if (c == '-') {
      ++at_;
      return combine(Number::of(int64_t{0}), '-', factor());
    }
    if (c == '(') {
      ++at_;
      const Number value = sum();
      if (next() != ')') fail("a ')' is missing");
      ++at_;
      return value;
    }
    if (begins_name(c)) return lookup_(name());
    if ((c >= '0' && c <= '9') || c == '.') return number();
    fail(c == '\0' ? "a number or a name is missing at its end"
                   : fmt::format("expected a number or a name, found '{}'", rest()));
  }

  std::string name() {
    const size_t begin = at_;
    while (at_ < text_.size() && is_name_character(text_[at_])) ++at_;
    return std::string(text_.substr(begin, at_ - begin));
  }

  Number number() {
    const char* const begin = text_.data() + at_;
    const char* const last = text_.data() + text_.size();
    int64_t integer = 0;
    double real = 0.0;
    const auto whole = std::from_chars(begin, last, integer);
    const auto any = std::from_chars(begin, last, real);
    if (any.ec != std::errc()) fail(fmt::format("'{}' is not a number", rest()));
    at_ += static_cast<size_t>(any.ptr - begin);
    const bool is_integer = whole.ec == std::errc() && whole.ptr == any.ptr;
    return is_integer ? Number::of(integer) : Number::of(real);
  }

  Number combine(const Number& a, char sign, const Number& b) const {
    if (sign == '/' && b.as_double() == 0.0) fail("division by zero");
    if (a.is_integer && b.is_integer) return Number::of(of_integers(a.integer, sign, b.integer));
    const double x = a.as_double(), y = b.as_double();
    const double value = sign == '+' ? x + y : sign == '-' ? x - y : sign == '*' ? x * y : x / y;
    if (!std::isfinite(value)) fail("the result is too large");
    return Number::of(value);
  }

  int64_t of_integers(int64_t a, char sign, int64_t b) const {
    int64_t value = 0;
    bool overflows = false;
    if (sign == '+') overflows = __builtin_add_overflow(a, b, &value);
    if (sign == '-') overflows = __builtin_sub_overflow(a, b, &value);
    if (sign == '*') overflows = __builtin_mul_overflow(a, b, &value);
    if (sign == '/') {
      // The one quotient that overflows is that of the smallest integer and -1.
      if (b == -1) return of_integers(0, '-', a);
      if (a % b != 0) {
        fail(fmt::format(
            "{} / {} is not an integer; with a float, as in {} / {}.0, it is a fraction", a, b, a,
            b));
      }
      value = a / b;
    }
    if (overflows) fail(fmt::format("{} {} {} does not fit into 64 bits", a, sign, b));
    return value;
  }

  std::string_view text_;
  const std::function<Number(const std::string&)>& lookup_;
  size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

Number evaluate(std::string_view expression,
                const std::function<Number(const std::string& name)>& lookup) {
  return Parser(expression, lookup).parse();
}

}  // namespace lacuna
