#include "apps/calibrate/trainee.hpp"

#include "apps/calibrate/workout.hpp"
#include "train/kernel_choice.hpp"

namespace foreshard::calibrate {
namespace {

constexpr double learning_rate = 1e-3;
constexpr std::uint64_t seed = 1;

}  // namespace

Trainee::Trainee(const plan::Settings& settings, comm::Communicator& communicator,
                 const engine::MakeEngine& make_engine)
    : batch_(batch_of(settings)), rank_(settings, DType::f32, seed, communicator, {}, make_engine) {
  engine::Engine& engine = rank_.engine();
  engine.use_kernels(train::choose_kernels(communicator, rank_.plan(), engine), rank_.plan());
}

std::vector<trace::Event> Trainee::step() {
  rank_.step(++step_, learning_rate, batch_, &recorder_);
  return recorder_.take();
}

}  // namespace foreshard::calibrate
