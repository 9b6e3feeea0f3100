#pragma once
#include "plan/plan.hpp"
#include "trace/hdf5.hpp"

namespace foreshard::trace {

/// Writes all of a plan as the group /plan of a file.
void write_plan(hid_t file, const plan::Plan& plan);

/// Reads it back: equal in every member. Throws LibraryError where a range or an id leads outside.
plan::Plan read_plan(hid_t file);

}  // namespace foreshard::trace
