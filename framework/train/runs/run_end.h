// How a training ended.
#pragma once

namespace lacuna {

enum class RunEnd {
  Finished,      ///< all steps are taken
  StoppedEarly,  ///< by early stopping: the model is the best one
  Stopped,       ///< its caller requested it: the run can be resumed
  Interrupted,   ///< by SIGINT (Ctrl-C): the run can be resumed
  Terminated,    ///< by SIGTERM: the run can be resumed
  HungUp,        ///< by SIGHUP: the run can be resumed
};

}  // namespace lacuna
