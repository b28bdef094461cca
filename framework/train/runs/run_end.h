// How a training ended.
#pragma once

namespace lacuna {

enum class RunEnd {
  Finished,      ///< all steps are taken
  StoppedEarly,  ///< by early stopping: the model is as it was best
  Stopped,       ///< its caller asked for it: the run can go on
  Interrupted,   ///< by SIGINT, as Ctrl-C sends it: the run can go on
  Terminated,    ///< by SIGTERM: the run can go on
  HungUp,        ///< by SIGHUP: the run can go on
};

}  // namespace lacuna
