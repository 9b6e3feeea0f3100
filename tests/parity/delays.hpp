#pragma once
#include <chrono>
#include <random>
#include <thread>

#include "plan/plan.hpp"

namespace foreshard::parity {

/// Slows ops at random, the ops of one lane most, each rank and op in its own way.
class Delays {
 public:
  Delays(unsigned seed, plan::Lane slowest) : seed_(seed), slowest_(slowest) {}
  void operator()(int rank, const plan::Op& op) const {
    thread_local std::mt19937 random(seed_ * 31 + static_cast<unsigned>(rank) * 7 + static_cast<unsigned>(op.lane));
    const int longest_us = op.lane == slowest_ ? 400 : 40;
    if (random() % 3 == 0)
      std::this_thread::sleep_for(std::chrono::microseconds(random() % static_cast<unsigned>(longest_us)));
  }

 private:
  unsigned seed_;
  plan::Lane slowest_;
};

}  // namespace foreshard::parity
