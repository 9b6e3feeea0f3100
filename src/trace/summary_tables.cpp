#include "trace/summary_tables.hpp"

#include <map>

#include "trace/event_tables.hpp"

namespace foreshard::trace {
namespace {

struct CurvePoint {
  std::int32_t step = 0;
  double seconds = 0;
};

/// The summary's single numbers and how each is called in the file.
template <class SummaryRef, class Visit>
void visit_numbers(SummaryRef& summary, Visit visit) {
  visit(hdf5::Column{"arena_bytes", "byte", "size of the arena"}, summary.arena_bytes);
  visit(hdf5::Column{"arena_touched_bytes", "byte", "pages of the arena that were written"},
        summary.arena_touched_bytes);
  visit(hdf5::Column{"host_arena_bytes", "byte", "size of the arena in host memory"}, summary.host_arena_bytes);
  visit(hdf5::Column{"rss_bytes", "byte", "peak resident memory of the process"}, summary.rss_bytes);
  visit(hdf5::Column{"base_rss_bytes", "byte", "resident memory before the arena was used"}, summary.base_rss_bytes);
  visit(hdf5::Column{"step_time_s", "s", "median step time after warm-up"}, summary.step_time_s);
  visit(hdf5::Column{"tflops_per_device", "1e12 s-1", "model FLOPs per second and rank"}, summary.tflops_per_device);
  visit(hdf5::Column{"exposed_comm_s", "s", "communication of a step that compute does not cover"},
        summary.exposed_comm_s);
}

std::vector<CurvePoint> step_curve(std::span<const StepRow> steps) {
  std::map<std::int32_t, std::pair<double, int>> sums;
  for (const StepRow& row : steps) {
    auto& [seconds, count] = sums[row.step];
    seconds += static_cast<double>(row.duration_ns) * 1e-9;
    ++count;
  }
  std::vector<CurvePoint> curve;
  for (const auto& [step, sum] : sums) curve.push_back({step, sum.first / sum.second});
  return curve;
}

Fields<CurvePoint> curve_fields() {
  Fields<CurvePoint> f;
  f.add("step", "1", "optimizer step", f.row.step);
  f.add("step_time", "s", "step time, mean over ranks", f.row.seconds);
  return f;
}

void write_curve(hid_t summary, std::span<const StepRow> steps) {
  write_table<CurvePoint>(summary, "step_time", curve_fields(), step_curve(steps));
  const hdf5::Handle curve = hdf5::open_group(summary, "step_time");
  hdf5::write_attribute(curve.id(), "NX_class", "NXdata");
  hdf5::write_attribute(curve.id(), "signal", "step_time");
  hdf5::write_attribute(curve.id(), "axes", "step");
}

void write_collectives(hid_t summary, const Collectives& collectives) {
  const CollectiveRow rows[] = {{plan::OpKind::all_gather, collectives.all_gather},
                                {plan::OpKind::reduce_scatter, collectives.reduce_scatter},
                                {plan::OpKind::all_reduce, collectives.all_reduce}};
  write_table<CollectiveRow>(summary, "collectives", collective_fields(), rows);
}

Collectives read_collectives(hid_t summary) {
  Collectives collectives;
  for (const CollectiveRow& row : read_table<CollectiveRow>(summary, "collectives", collective_fields())) {
    if (row.kind == plan::OpKind::all_gather) collectives.all_gather = row.total;
    if (row.kind == plan::OpKind::reduce_scatter) collectives.reduce_scatter = row.total;
    if (row.kind == plan::OpKind::all_reduce) collectives.all_reduce = row.total;
  }
  return collectives;
}

}  // namespace

void write_summary(hid_t file, const Summary& summary, std::span<const StepRow> steps) {
  const hdf5::Handle group = hdf5::create_group(file, "summary");
  hdf5::write_attribute(group.id(), "NX_class", "NXentry");
  hdf5::write_attribute(group.id(), "default", "step_time");
  visit_numbers(summary, [&](const hdf5::Column& column, auto value) {
    hdf5::write_scalar(group.id(), column, hdf5::native<decltype(value)>(), &value);
  });
  write_collectives(group.id(), summary.collectives);
  write_curve(group.id(), steps);
}

std::optional<Summary> read_summary(hid_t file) {
  if (!hdf5::has(file, "summary")) return std::nullopt;
  const hdf5::Handle group = hdf5::open_group(file, "summary");
  Summary summary;
  visit_numbers(summary, [&](const hdf5::Column& column, auto& value) {
    hdf5::read_scalar(group.id(), column.name, hdf5::native<std::remove_reference_t<decltype(value)>>(), &value);
  });
  summary.collectives = read_collectives(group.id());
  return summary;
}

}  // namespace foreshard::trace
