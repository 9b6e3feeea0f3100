#include "rehearsal/runtime/job.hpp"

#include <cstdlib>
#include <numeric>
#include <sstream>
#include <string>

namespace rehearsal {
namespace {

std::vector<int> numbers_of(const char* list) {
  std::vector<int> numbers;
  std::istringstream words(list);
  for (std::string word; std::getline(words, word, ',');) numbers.push_back(std::atoi(word.c_str()));
  return numbers;
}

Job read_job() {
  const char* count = std::getenv("FORESHARD_REHEARSAL_DEVICES");
  if (!count) return {};
  std::vector<int> devices(static_cast<std::size_t>(std::atoi(count)));
  std::iota(devices.begin(), devices.end(), 0);
  if (const char* visible = std::getenv("CUDA_VISIBLE_DEVICES")) devices = numbers_of(visible);
  return {.processes = true, .devices = devices};
}

}  // namespace

const Job& job() {
  static const Job read = read_job();
  return read;
}

int physical_device(int device) {
  return job().processes ? job().devices.at(static_cast<std::size_t>(device)) : device;
}

}  // namespace rehearsal
