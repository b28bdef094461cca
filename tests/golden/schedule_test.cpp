// Schedules against cstorch's values.
#include "lacuna/framework/config/schedule.h"

#include <gmock/gmock.h>

#include "golden/golden.h"
#include "lacuna/framework/io/yaml.h"

namespace lacuna::schedule_test {
namespace {

using testing::ElementsAre;

Config config_of(const Hdf5File& file, const std::string& group) {
  return parse_yaml(file.attribute_text(group, "config"), file.path() + ":" + group);
}

TEST(ScheduleGolden, TheFileHasTheGroupsThatAreTested) {
  EXPECT_THAT(golden::open("schedules.h5").children("/"),
              ElementsAre("cycling", "hyper", "update"));
}

TEST(ScheduleGolden, ValuesOverSteps) {
  const Hdf5File file = golden::open("schedules.h5");
  for (const std::string& name : golden::cases(file, "hyper")) {
    const std::string group = "hyper/" + name;
    ASSERT_THAT(file.children(group), ElementsAre("steps", "values")) << group;
    const Config config = config_of(file, group);
    const Schedule schedule = Schedule::from_config(config);
    config.require_all_read();
    std::vector<float> values;
    for (const int64_t step : file.read_integers(group + "/steps")) {
      values.push_back(schedule.at(step));
    }
    ASSERT_FALSE(values.empty()) << group;
    golden::expect_near(values, file.read_floats(group + "/values").storage(),
                        group + " " + config.to_json());
  }
}

// Counts of nonzeros are cut off, so a difference in the last bit of a drop fraction can change a
// mask. Where the cosine is 1 or −1, libraries do not differ.
TEST(ScheduleGolden, CosinesHaveTheSameBitsAtTheirEnds) {
  const Hdf5File file = golden::open("schedules.h5");
  int ends = 0;
  for (const std::string& name : golden::cases(file, "hyper")) {
    const std::string group = "hyper/" + name;
    const Config config = config_of(file, group);
    if (!config.is_map() || config.at("type").text() != "cosine") continue;
    const auto half_period = config.required<int64_t>("half_period");
    const Schedule schedule = Schedule::from_config(config);
    const Tensor expected = file.read_floats(group + "/values");
    const std::vector<int64_t> steps = file.read_integers(group + "/steps");
    for (size_t i = 0; i < steps.size(); ++i) {
      if (steps[i] % half_period != 0) continue;
      EXPECT_EQ(schedule.at(steps[i]), expected.data()[i]) << group << ", step " << steps[i];
      ++ends;
    }
  }
  EXPECT_GE(ends, 2);
}

TEST(ScheduleGolden, CyclingAdvancesAfterEachUpdate) {
  const Hdf5File file = golden::open("schedules.h5");
  ASSERT_THAT(file.children("cycling"), ElementsAre("is_update", "values"));
  const Schedule schedule = Schedule::from_config(config_of(file, "cycling"));
  std::vector<float> values;
  int64_t updates = 0;
  for (const uint8_t is_update : file.read_bytes("cycling/is_update")) {
    values.push_back(schedule.at(static_cast<int64_t>(values.size()), updates));
    updates += is_update;
  }
  ASSERT_FALSE(values.empty());
  std::cout << "cycling: " << values.size() << " steps\n";
  golden::expect_near(values, file.read_floats("cycling/values").storage(), "cycling");
}

TEST(ScheduleGolden, UpdateSteps) {
  const Hdf5File file = golden::open("schedules.h5");
  for (const std::string& name : golden::cases(file, "update")) {
    const std::string group = "update/" + name;
    ASSERT_THAT(file.children(group), ElementsAre("is_update")) << group;
    const Config config = config_of(file, group);
    const UpdateSchedule schedule = UpdateSchedule::from_config(config);
    config.require_all_read();
    const std::vector<uint8_t> expected = file.read_bytes(group + "/is_update");
    ASSERT_FALSE(expected.empty()) << group;
    for (size_t step = 0; step < expected.size(); ++step) {
      EXPECT_EQ(schedule.is_update(static_cast<int64_t>(step)), expected[step] != 0)
          << group << " " << config.to_json() << ", step " << step;
    }
  }
}

}  // namespace
}  // namespace lacuna::schedule_test
