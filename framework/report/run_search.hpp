// Which folders hold runs: those that a user names, and those below them.
#pragma once

#include <string>
#include <vector>

namespace lacuna {

/// Folders of runs, and a line for each path that was passed over because it holds none.
struct FoundRuns {
  std::vector<std::string> folders;
  std::vector<std::string> passed_over = {};
};

/// The runs that the given paths stand for. A run's folder stands for itself, any other folder for
/// the runs in it and in its folders, four levels deep, by name; hidden folders are not looked
/// into. A file, or a folder without runs, is passed over. A run that is found twice counts once.
/// *Errors:* DataError when a path does not exist, or when there is no run at all. *Cost:* reads
/// names of files only.
FoundRuns find_runs(const std::vector<std::string>& given);

/// *Errors:* DataError when the folder does not exist, or holds no config.yaml of a run.
void require_run(const std::string& folder);

/// Whether the run in a folder has come to its end: config.yaml is there, and summary.json can be
/// read.
bool has_ended(const std::string& folder);

}  // namespace lacuna
