#include "lacuna/framework/model/expression.hpp"

#include <gtest/gtest.h>

#include <string>

#include "lacuna/framework/core/error.h"
#include "throws.h"

namespace lacuna::expression_test {
namespace {

Number number(const std::string& expression) {
  return evaluate(expression, [](const std::string& name) {
    if (name == "n") return Number::of(int64_t{7});
    if (name == "wide_2") return Number::of(0.5);
    throw ConfigError("no " + name);
  });
}

int64_t integer(const std::string& expression) {
  const Number value = number(expression);
  EXPECT_TRUE(value.is_integer) << expression;
  return value.integer;
}

double real(const std::string& expression) {
  const Number value = number(expression);
  EXPECT_FALSE(value.is_integer) << expression;
  return value.real;
}

TEST(Expression, IntegersStayIntegers) {
  EXPECT_EQ(integer("3 * n"), 21);
  EXPECT_EQ(integer("3*n+1"), 22);
  EXPECT_EQ(integer(" 1 + 2 * 3 "), 7);
  EXPECT_EQ(integer("(1 + 2) * 3"), 9);
  EXPECT_EQ(integer("10 - 2 - 3"), 5);
  EXPECT_EQ(integer("24 / 4 / 2"), 3);
  EXPECT_EQ(integer("-n + 10"), 3);
  EXPECT_EQ(integer("2 * -(n - 3)"), -8);
  EXPECT_EQ(integer("9223372036854775807"), 9223372036854775807);
}

TEST(Expression, AFloatMakesAFloat) {
  EXPECT_DOUBLE_EQ(real("n / 2.0"), 3.5);
  EXPECT_DOUBLE_EQ(real("wide_2 * n"), 3.5);
  EXPECT_DOUBLE_EQ(real("1e1 + 1"), 11.0);
  EXPECT_DOUBLE_EQ(real("2.0 - n"), -5.0);
}

TEST(Expression, RefusesWhatHasNoValue) {
  const auto refuses = [](const std::string& expression, const std::string& problem) {
    expect_throws<ConfigError>([&] { number(expression); },
                               "in the expression '$(" + expression + ")': " + problem);
  };
  expect_throws<ConfigError>([&] { number(std::string(5000, '(')); },
                             "in the expression '$(" + std::string(200, '(') +
                                 "… (5000 characters))': nests deeper than 50");
  refuses("n / 2", "7 / 2 is not an integer; with a float, as in 7 / 2.0, it is a fraction");
  refuses("1 / (n - 7)", "division by zero");
  refuses("1.0 / 0", "division by zero");
  refuses("9223372036854775807 + 1", "9223372036854775807 + 1 does not fit into 64 bits");
  refuses("-9223372036854775807 - 2", "-9223372036854775807 - 2 does not fit into 64 bits");
  refuses("4611686018427387904 * 2", "4611686018427387904 * 2 does not fit into 64 bits");
  refuses("(-9223372036854775807 - 1) / -1", "0 - -9223372036854775808 does not fit into 64 bits");
  refuses("1e308 * 10", "the result is too large");
  refuses("", "a number or a name is missing at its end");
  refuses("3 *", "a number or a name is missing at its end");
  refuses("3 * * 2", "expected a number or a name, found '* 2'");
  refuses("3 4", "unexpected '4'");
  refuses("(3", "a ')' is missing");
  refuses("3)", "unexpected ')'");
  refuses(".", "'.' is not a number");
  refuses("2 ^ 3", "unexpected '^ 3'");
  refuses(std::string(60, '(') + "1" + std::string(60, ')'), "nests deeper than 50");
  expect_throws<ConfigError>([] { number("m + 1"); }, "no m");
}

}  // namespace
}  // namespace lacuna::expression_test
