// The lacuna program.
#include "lacuna/framework/train/program.h"

int main(int argc, char** argv) { return lacuna::run_program(argc, argv); }
