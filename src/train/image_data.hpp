#pragma once
#include <string>
#include <vector>

#include "train/image_shard.hpp"

namespace foreshard::train {

/// CIFAR-10's binary files: a byte of class, then 32·32 bytes of red, of green and of blue
/// (https://www.cs.toronto.edu/~kriz/cifar.html). With `fine`, CIFAR-100's: two bytes of class, of which the second
/// counts. Throws InputError(bad_input).
LabelledImages read_cifar(const std::vector<std::filesystem::path>& files, bool fine);

/// A file of images and one of labels in MNIST's IDX format (bytes; http://yann.lecun.com/exdb/mnist/).
LabelledImages read_idx(const std::filesystem::path& images, const std::filesystem::path& labels);

/// So many images of `side`·`side` pixels and three channels, a function of the seed: each class has a smooth pattern
/// of its own, on which there is noise. Classes take turns.
LabelledImages synthetic_images(std::int64_t count, std::int64_t classes, std::int64_t side, std::uint64_t seed);

/// Writes PREFIX_train.bin and, of the last images, PREFIX_val.bin; returns what was written. Throws InputError(usage)
/// if a file exists and `force` is not set.
std::vector<std::filesystem::path> write_image_data(const LabelledImages& images, const std::string& prefix,
                                                    double val_fraction, bool force);

}  // namespace foreshard::train
