#include "trace/table.hpp"

#include <cstring>

#include "base/error.hpp"

namespace foreshard::trace {
namespace {

void gather_text(const std::string& text, std::byte* value, std::size_t size_bytes) {
  std::memset(value, 0, size_bytes);
  std::memcpy(value, text.data(), std::min(text.size(), size_bytes));
}

std::string text_of(const std::byte* value, std::size_t size_bytes) {
  const char* text = reinterpret_cast<const char*>(value);
  return {text, strnlen(text, size_bytes)};
}

void expect_named(const Field& field, std::byte value) {
  if (field.named_values != 0 && std::to_integer<std::size_t>(value) >= field.named_values)
    throw LibraryError(field.column.name +
                       " holds a value that has no name here: a newer Foreshard wrote it, or it is damaged");
}

}  // namespace

void gather(const Field& field, const Rows<const std::byte>& rows, std::byte* values) {
  for (std::size_t i = 0; i < rows.count; ++i, values += field.size_bytes) {
    const std::byte* member = rows.first + i * rows.stride_bytes + field.offset_bytes;
    if (field.is_text)
      gather_text(*reinterpret_cast<const std::string*>(member), values, field.size_bytes);
    else
      std::memcpy(values, member, field.size_bytes);
  }
}

void scatter(const Field& field, const std::byte* values, const Rows<std::byte>& rows) {
  for (std::size_t i = 0; i < rows.count; ++i, values += field.size_bytes) {
    std::byte* member = rows.first + i * rows.stride_bytes + field.offset_bytes;
    expect_named(field, *values);
    if (field.is_text)
      *reinterpret_cast<std::string*>(member) = text_of(values, field.size_bytes);
    else
      std::memcpy(member, values, field.size_bytes);
  }
}

std::size_t table_rows(hid_t group, const std::string& name, const std::vector<Field>& fields) {
  const hsize_t rows = hdf5::row_count(group, fields.front().column.name);
  for (const Field& field : fields)
    if (hdf5::row_count(group, field.column.name) != rows)
      throw LibraryError(name + "/" + field.column.name + " is shorter or longer than its neighbours");
  return rows;
}

}  // namespace foreshard::trace
