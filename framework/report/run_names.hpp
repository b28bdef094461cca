// What runs are called: by the ends of their paths, and by what differs in these.
#pragma once

#include <string>
#include <vector>

namespace lacuna {

/// Each folder's name: the shortest end of its path that no other one has.
std::vector<std::string> names_of_folders(const std::vector<std::string>& folders);

/// The names without what all of them have in common: settings of the same value
/// ("a.lr=0.1,seed=3" and "a.lr=0.2,seed=3" become "lr=0.1" and "lr=0.2"), and words at the
/// beginning and at the end, which end at one of `/ _ - ,` or a space. They stay different from
/// each other, and no label is a number alone.
std::vector<std::string> short_labels(const std::vector<std::string>& names);

/// The words that labels of repetitions all begin with ("rigl-s0" and "rigl-s1": "rigl";
/// "lr=1,seed=0" and "lr=1,seed=1": "lr=1"). Empty where they have nothing in common.
std::string common_label(const std::vector<std::string>& labels);

}  // namespace lacuna
