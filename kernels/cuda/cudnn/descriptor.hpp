#pragma once
#include <cudnn_graph.h>

#include <cstdint>
#include <memory>
#include <span>
#include <type_traits>
#include <vector>

/// cuDNN's descriptors, owned. Throws LibraryError where the library fails; what it does not support it refuses in
/// `finalize`. Needs the library.
namespace foreshard::kernels::cuda::cudnn {

/// The name that cuDNN has for a type of attribute.
template <class T>
inline constexpr cudnnBackendAttributeType_t type_of = CUDNN_TYPE_INT64;
template <>
inline constexpr cudnnBackendAttributeType_t type_of<bool> = CUDNN_TYPE_BOOLEAN;
template <>
inline constexpr cudnnBackendAttributeType_t type_of<char> = CUDNN_TYPE_CHAR;
template <>
inline constexpr cudnnBackendAttributeType_t type_of<void*> = CUDNN_TYPE_VOID_PTR;
template <>
inline constexpr cudnnBackendAttributeType_t type_of<cudnnHandle_t> = CUDNN_TYPE_HANDLE;
template <>
inline constexpr cudnnBackendAttributeType_t type_of<cudnnDataType_t> = CUDNN_TYPE_DATA_TYPE;
template <>
inline constexpr cudnnBackendAttributeType_t type_of<cudnnPointwiseMode_t> = CUDNN_TYPE_POINTWISE_MODE;
template <>
inline constexpr cudnnBackendAttributeType_t type_of<cudnnReduceTensorOp_t> = CUDNN_TYPE_REDUCTION_OPERATOR_TYPE;
template <>
inline constexpr cudnnBackendAttributeType_t type_of<cudnnBackendHeurMode_t> = CUDNN_TYPE_HEUR_MODE;
template <>
inline constexpr cudnnBackendAttributeType_t type_of<cudnnBackendKnobType_t> = CUDNN_TYPE_KNOB_TYPE;
template <>
inline constexpr cudnnBackendAttributeType_t type_of<cudnnBackendNumericalNote_t> = CUDNN_TYPE_NUMERICAL_NOTE;

class Descriptor {
 public:
  explicit Descriptor(cudnnBackendDescriptorType_t);

  template <class T>
  Descriptor& set(cudnnBackendAttributeName_t name, const T& value) {
    return set(name, std::span<const T>(&value, 1));
  }
  template <class T>
  Descriptor& set(cudnnBackendAttributeName_t name, std::span<const T> values) {
    return set(name, type_of<T>, values.size(), values.data());
  }
  Descriptor& set(cudnnBackendAttributeName_t, const Descriptor&);
  Descriptor& set(cudnnBackendAttributeName_t, const std::vector<Descriptor>&);
  Descriptor& finalize();
  /// Whether it could be finalized: cuDNN supports it.
  [[nodiscard]] bool finalized();

  /// At most `most` values of an attribute.
  template <class T>
  std::vector<T> values(cudnnBackendAttributeName_t name, std::size_t most) const {
    std::vector<T> found(most);
    found.resize(get(name, type_of<T>, most, found.data()));
    return found;
  }
  template <class T>
  T value(cudnnBackendAttributeName_t name) const {
    return values<T>(name, 1).at(0);
  }
  /// At most `most` descriptors of this type that an attribute holds.
  std::vector<Descriptor> descriptors(cudnnBackendAttributeName_t, cudnnBackendDescriptorType_t,
                                      std::size_t most) const;

  cudnnBackendDescriptor_t get() const { return object_.get(); }

 private:
  Descriptor& set(cudnnBackendAttributeName_t, cudnnBackendAttributeType_t, std::size_t count, const void* values);
  std::size_t get(cudnnBackendAttributeName_t, cudnnBackendAttributeType_t, std::size_t most, void* values) const;

  struct Destroy {
    void operator()(void* object) const;
  };
  std::unique_ptr<void, Destroy> object_;
};

}  // namespace foreshard::kernels::cuda::cudnn
