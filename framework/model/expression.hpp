// Arithmetic in a model's description: what stands in `$(3 * n)`.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace lacuna {

/// A number that is an integer for as long as all it was made of are.
struct Number {
  bool is_integer = true;
  int64_t integer = 0;
  double real = 0.0;  ///< where it is none

  static Number of(int64_t value) { return {true, value, 0.0}; }
  static Number of(double value) { return {false, 0, value}; }
  double as_double() const { return is_integer ? static_cast<double>(integer) : real; }
};

/// The value of an expression of numbers and names with + - * / and parentheses. Integers give
/// integers; `lookup` gives the value of a name, and throws if there is none. *Errors:*
/// ConfigError, without a position, that quotes the expression: when it is none, when integers do
/// not divide exactly or overflow, on a division by zero.
Number evaluate(std::string_view expression,
                const std::function<Number(const std::string& name)>& lookup);

/// Whether the character can stand in a name, and at its beginning.
bool is_name_character(char c);
bool begins_name(char c);

}  // namespace lacuna
