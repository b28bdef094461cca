#include "lacuna/framework/io/progress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "lacuna/framework/io/log.h"
#include "temporary_folder.h"

namespace lacuna::progress_test {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

const ProgressReport kReport{.step = 469,
                             .total_steps = 4690,
                             .epoch = 1.0,
                             .loss = 0.21344,
                             .accuracy = 0.9351,
                             .density = 0.1032,
                             .examples_per_second = 81234.4};

TEST(ProgressReport, IsALine) {
  EXPECT_EQ(to_string(kReport),
            "step 469/4690  epoch 1.000  loss 0.2134  accuracy 93.51 %  density 10.3 %  81234 "
            "examples/s");
  ProgressReport regression = kReport;
  regression.accuracy = kNan;
  regression.loss = 1e30;
  EXPECT_EQ(to_string(regression),
            "step 469/4690  epoch 1.000  loss 1e+30  density 10.3 %  81234 examples/s");
}

TEST(ProgressReport, HasDigitsOfSmallDensities) {
  ProgressReport wide = kReport;
  wide.density = 2.83e-5;
  EXPECT_THAT(to_string(wide), ::testing::HasSubstr("  density 0.0028 %  "));
  EXPECT_THAT(terminal_line(wide, kNan, 79), ::testing::HasSubstr("  density 0.0028%  "));
  wide.density = 0.0;
  EXPECT_THAT(to_string(wide), ::testing::HasSubstr("  density 0.0 %  "));
}

TEST(TerminalLine, FitsIntoTheTerminal) {
  const std::string whole =
      "step 469/4690  loss 0.2134  acc 93.5%  density 10.3%  81234 ex/s  0:48 left";
  EXPECT_EQ(terminal_line(kReport, 48.0, 79), whole);
  EXPECT_EQ(terminal_line(kReport, 48.0, whole.size()), whole);
  EXPECT_EQ(terminal_line(kReport, 48.0, whole.size() - 1),
            "step 469/4690  loss 0.2134  acc 93.5%  density 10.3%  81234 ex/s");
  EXPECT_EQ(terminal_line(kReport, kNan, 30), "step 469/4690  loss 0.2134");
  EXPECT_EQ(terminal_line(kReport, kNan, 0), "step 469/4690");
}

TEST(FormatDuration, ShowsHoursWhereThereAreSome) {
  EXPECT_EQ(format_duration(0.0), "0:00");
  EXPECT_EQ(format_duration(59.6), "1:00");
  EXPECT_EQ(format_duration(125.0), "2:05");
  EXPECT_EQ(format_duration(3723.0), "1:02:03");
  EXPECT_EQ(format_duration(360000.0), "100:00:00");
  EXPECT_EQ(format_duration(-1.0), "0:00");
  EXPECT_THAT(format_duration(1e300), HasSubstr(":"));
}

TEST(Progress, WritesLinesToTheLog) {
  testing::internal::CaptureStderr();
  log_to_console(LogLevel::Info);
  {
    Progress progress(ProgressStyle::Lines);
    progress.begin(0, 4690);
    progress.tick([]() -> ProgressReport { throw std::logic_error("nothing is to be drawn"); });
    progress.report(kReport);
  }
  stop_logging();
  EXPECT_EQ(testing::internal::GetCapturedStderr(), to_string(kReport) + "\n");
}

TEST(Progress, ShowsOneReportOfEachPartOfALongRun) {
  testing::internal::CaptureStderr();
  log_to_console(LogLevel::Info);
  Progress progress(ProgressStyle::Lines);
  progress.begin(100, 1100);
  for (int64_t step = 101; step <= 1100; ++step) {
    progress.report({.step = step, .total_steps = 1100});
    if (step % 20 == 0) progress.report_evaluation(step, "evaluated at " + std::to_string(step));
  }
  stop_logging();
  const std::string shown = testing::internal::GetCapturedStderr();
  EXPECT_EQ(std::ranges::count(shown, '\n'), 21 + 50);  // of fifty evaluations, all
  for (const char* line :
       {"step 101/", "step 151/", "step 1100/", "at 120\n", "at 160\n", "at 1100\n"}) {
    EXPECT_THAT(shown, HasSubstr(line));
  }
}

TEST(Progress, RewritesOneLineOnATerminalAndKeepsReportsInTheLogFile) {
  const TemporaryFolder folder;
  testing::internal::CaptureStderr();
  log_to_console(LogLevel::Info);
  log_to_file(folder / "log.txt");
  {
    Progress progress(ProgressStyle::Terminal);
    progress.begin(468, 4690);
    progress.tick([] { return kReport; });
    progress.tick([] { return kReport; });  // too soon
    progress.report(kReport);
  }
  stop_logging();
  const std::string shown = testing::internal::GetCapturedStderr();
  const std::string drawn =
      "\r\x1b[Kstep 469/4690  loss 0.2134  acc 93.5%  density 10.3%  81234 ex/s";
  EXPECT_THAT(shown, testing::StartsWith(drawn));
  EXPECT_EQ(shown.find("step", drawn.size()), shown.rfind("step"));  // drawn twice
  EXPECT_THAT(shown, testing::EndsWith(" left\r\x1b[K"));
  EXPECT_THAT(read_text(folder / "log.txt"), HasSubstr("info: " + to_string(kReport) + "\n"));
}

TEST(NumberWords, GroupThousands) {
  EXPECT_EQ(grouped(0), "0");
  EXPECT_EQ(grouped(999), "999");
  EXPECT_EQ(grouped(1570), "1,570");
  EXPECT_EQ(grouped(1234567), "1,234,567");
  EXPECT_EQ(grouped(-123), "-123");
  EXPECT_EQ(grouped(-1570), "-1,570");
  EXPECT_EQ(grouped(std::numeric_limits<int64_t>::min()), "-9,223,372,036,854,775,808");
}

// An error of prices is told in money, not in powers of ten.
TEST(NumberWords, RoundToFourDigitsOrToWholeNumbers) {
  EXPECT_EQ(rounded(0.0), "0");
  EXPECT_EQ(rounded(0.012916721), "0.01292");
  EXPECT_EQ(rounded(7.5), "7.5");
  EXPECT_EQ(rounded(-1234.56), "-1235");
  EXPECT_EQ(rounded(9999.4), "9999");
  EXPECT_EQ(rounded(9999.6), "10,000");
  EXPECT_EQ(rounded(16807.4), "16,807");
  EXPECT_EQ(rounded(-16807.6), "-16,808");
  EXPECT_EQ(rounded(1e15), "1e+15");
  EXPECT_EQ(rounded(3.5e-7), "3.5e-07");
  EXPECT_EQ(rounded(std::numeric_limits<double>::infinity()), "inf");
  EXPECT_EQ(rounded(std::numeric_limits<double>::quiet_NaN()), "nan");
}

}  // namespace
}  // namespace lacuna::progress_test
