#include "kernels/cuda/cudnn/descriptor.hpp"

#include <algorithm>
#include <string>

#include "kernels/cuda/cudnn/library.hpp"

namespace foreshard::kernels::cuda::cudnn {
namespace {

std::vector<cudnnBackendDescriptor_t> objects_of(const std::vector<Descriptor>& descriptors) {
  std::vector<cudnnBackendDescriptor_t> objects(descriptors.size());
  std::ranges::transform(descriptors, objects.begin(), [](const Descriptor& d) { return d.get(); });
  return objects;
}

}  // namespace

Descriptor::Descriptor(cudnnBackendDescriptorType_t type) {
  cudnnBackendDescriptor_t object = nullptr;
  check(library()->create_descriptor(type, &object), "cudnnBackendCreateDescriptor");
  object_.reset(object);
}

void Descriptor::Destroy::operator()(void* object) const { library()->destroy_descriptor(object); }

Descriptor& Descriptor::set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, std::size_t count,
                            const void* values) {
  check(library()->set_attribute(get(), name, type, static_cast<std::int64_t>(count), values),
        "cudnnBackendSetAttribute (" + std::to_string(name) + ")");
  return *this;
}

Descriptor& Descriptor::set(cudnnBackendAttributeName_t name, const Descriptor& other) {
  const cudnnBackendDescriptor_t object = other.get();
  return set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &object);
}

Descriptor& Descriptor::set(cudnnBackendAttributeName_t name, const std::vector<Descriptor>& others) {
  return set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, others.size(), objects_of(others).data());
}

Descriptor& Descriptor::finalize() {
  check(library()->finalize(get()), "cudnnBackendFinalize");
  return *this;
}

bool Descriptor::finalized() { return library()->finalize(get()) == CUDNN_STATUS_SUCCESS; }

std::size_t Descriptor::get(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, std::size_t most,
                            void* values) const {
  std::int64_t count = 0;
  check(library()->get_attribute(get(), name, type, static_cast<std::int64_t>(most), &count, values),
        "cudnnBackendGetAttribute (" + std::to_string(name) + ")");
  return std::min(static_cast<std::size_t>(count), most);
}

std::vector<Descriptor> Descriptor::descriptors(cudnnBackendAttributeName_t name, cudnnBackendDescriptorType_t type,
                                                std::size_t most) const {
  std::vector<Descriptor> found;
  for (std::size_t n = 0; n < most; ++n) found.emplace_back(type);
  std::vector<cudnnBackendDescriptor_t> objects = objects_of(found);
  const std::size_t count = get(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, most, objects.data());
  found.erase(found.begin() + static_cast<std::ptrdiff_t>(count), found.end());
  return found;
}

}  // namespace foreshard::kernels::cuda::cudnn
