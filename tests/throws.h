// Expecting an exception of one type whose message holds given words.
#pragma once

#include <gmock/gmock.h>

#include <string>

namespace lacuna {

/// Fails the test unless `action` throws an `Exception` whose message contains `words`.
template <class Exception, class Action>
void expect_throws(Action&& action, const std::string& words) {
  try {
    action();
    ADD_FAILURE() << "nothing was thrown; expected: " << words;
  } catch (const Exception& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr(words));
  }
}

}  // namespace lacuna
