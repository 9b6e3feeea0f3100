#include "sim/catalogue_command.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/config.hpp"
#include "base/json_text.hpp"
#include "base/run_main.hpp"
#include "sim/catalogue.hpp"
#include "sim/cluster.hpp"

namespace foreshard::sim {
namespace {

using Json = nlohmann::ordered_json;

Json facts(const std::string& name, const Cluster& c) {
  return {{"name", name},
          {"system", c.name},
          {"gpu", catalogue_key_of(c.device.name)},
          {"device", c.device.name},
          {"gpus_per_node", c.gpus_per_node},
          {"link_domain", c.link_domain},
          {"nics", c.nics},
          {"nic_bytes_per_s", c.nic_bytes_per_s.value},
          {"gpus", c.gpus}};
}

Json facts(const std::string& name, const Device& d) {
  return {{"name", name},
          {"device", d.name},
          {"half_flops", std::max(d.bf16_flops.value, d.fp16_flops.value)},
          {"memory_bytes", d.memory_bytes.value},
          {"memory_bytes_per_s", d.memory_bytes_per_s.value},
          {"link_bytes_per_s", d.link_bytes_per_s.value}};
}

template <class Read>
Json all_of(std::string_view folder, Read read) {
  Json all = Json::array();
  for (const std::string& name : catalogue_names(folder)) all.push_back(facts(name, read(name)));
  return all;
}

std::string cluster_row(const Json& c) {
  const int gpus = c["gpus"];
  return fmt::format("{:22}{:30}{:5}{:7}{:>8}{:6}{:9.0f}\n", c["name"].get<std::string>(),
                     c["device"].get<std::string>(), c["gpus_per_node"].get<int>(), c["link_domain"].get<int>(),
                     gpus > 0 ? std::to_string(gpus) : "", c["nics"].get<int>(),
                     c["nic_bytes_per_s"].get<double>() * 8e-9);
}

std::string gpu_row(const Json& d) {
  return fmt::format("{:22}{:30}{:9.0f}{:8.1f}{:8.0f}{:8.0f}\n", d["name"].get<std::string>(),
                     d["device"].get<std::string>(), d["half_flops"].get<double>() * 1e-12,
                     d["memory_bytes"].get<double>() / (1 << 30), d["memory_bytes_per_s"].get<double>() * 1e-9,
                     d["link_bytes_per_s"].get<double>() * 1e-9);
}

std::string text(const Json& all) {
  std::string text =
      fmt::format("{:52}{:>5}{:>7}{:>8}{:>6}{:>9}\n{:22}{:30}{:>5}{:>7}{:>8}{:>6}{:>9}\n", "", "GPUs", "linked", "", "",
                  "Gbit/s", "machine.cluster", "GPU", "/node", "GPUs", "in all", "NICs", "of each");
  for (const Json& cluster : all["clusters"]) text += cluster_row(cluster);
  text += fmt::format("\n{:52}{:>9}{:>8}{:>8}{:>8}\n{:22}{:30}{:>9}{:>8}{:>8}{:>8}\n", "", "TFLOP/s", "memory",
                      "memory", "links", "\"gpu\" of a cluster", "device", "16 bit", "GiB", "GB/s", "GB/s");
  for (const Json& gpu : all["gpus"]) text += gpu_row(gpu);
  return text +
         "\nMachines of your own: copy sim/machines/clusters/NAME.json, change it, and give its path as "
         "machine.cluster.\n";
}

}  // namespace

int catalogue_command(int argc, const char* const* argv) {
  Config config("foreshard-plan catalogue", "Prints the clusters and GPUs whose names predictions know.");
  config.example("foreshard-plan catalogue");
  config.add("json", false, "print one JSON object");
  config.parse(argc, argv);
  if (answered(config)) return 0;
  const Json all{{"clusters", all_of("clusters", read_cluster)}, {"gpus", all_of("gpus", read_device)}};
  fmt::print("{}", config.get<bool>("json") ? json_text(all) + "\n" : text(all));
  return 0;
}

}  // namespace foreshard::sim
