#include "lacuna/framework/train/model_file.h"

#include "lacuna/framework/io/checkpoint.h"
#include "lacuna/framework/train/run_folder.h"

namespace lacuna {

void save_model(const std::string& path, const Module& model) {
  Checkpoint checkpoint;
  checkpoint.state.merge("model", model.state_dict());
  write_checkpoint(path, checkpoint);
}

void load_weights(const std::string& file_or_run_folder, Module& model) {
  const Checkpoint checkpoint = find_checkpoint(file_or_run_folder).read();
  model.load_state_dict(checkpoint.state.below("model"));
}

}  // namespace lacuna
