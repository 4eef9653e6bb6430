// From the vendor's public data sheets. Dense figures: sheets that print twice as much mean 2:4
// sparsity. Half precision accumulates in f32, which on GeForce cards halves the printed f16 rate.
// Where a sheet says nothing of f64, the architecture's white paper does (a 64th of f32).
#include "lowtide/device/cards.h"

#include <algorithm>
#include <vector>

namespace lowtide {

namespace {

constexpr std::int64_t kGiga = 1'000'000'000, kTera = 1'000'000'000'000;
constexpr std::int64_t kGpuLaunch = 2000;  // start and drain of a kernel among others
// An estimate, of no card in particular: by when half of what a kernel would do at its rates is
// done, for matrix products and for streams.
constexpr std::int64_t kGpuComputeRamp = 4000, kGpuMemoryRamp = 2500;
constexpr std::int64_t kCollectiveCall = 20'000;
constexpr std::int64_t kCopyLatency = 10'000;
constexpr Bytes gibibytes(std::int64_t count) { return Bytes(count << 30); }

// x16 slots, each way: a sheet's 16, 32 and 64 GB/s less what packets cost.
constexpr LinkSpeed kPcie3{12 * kGiga, kCopyLatency}, kPcie4{25 * kGiga, kCopyLatency},
    kPcie5{50 * kGiga, kCopyLatency};

// In 10^10 operations a second, for one digit pair behind the point of a sheet's TFLOPS.
std::vector<ComputeRate> rates(std::int64_t f64, std::int64_t f32, std::int64_t tf32,
                               std::int64_t half) {
  constexpr std::int64_t kUnit = kTera / 100;
  return {{"f64", f64 * kUnit},
          {"f32", f32 * kUnit},
          {"tf32", tf32 * kUnit},
          {"bf16", half * kUnit},
          {"f16", half * kUnit}};
}

Device card(std::string name, std::string title, std::vector<ComputeRate> rates,
            std::int64_t gigabytes_per_second, Bytes memory, LinkSpeed host,
            std::int64_t peer_gigabytes_per_second, std::int64_t multiprocessors) {
  return {.name = std::move(name),
          .title = std::move(title),
          .rates = std::move(rates),
          .bytes_per_second = gigabytes_per_second * kGiga,
          .launch_ns = kGpuLaunch,
          .compute_ramp_ns = kGpuComputeRamp,
          .memory_ramp_ns = kGpuMemoryRamp,
          .multiprocessors = multiprocessors,
          .memory = memory,
          .host_link = host,
          .peer_link = LinkSpeed{peer_gigabytes_per_second * kGiga, kCollectiveCall}};
}

std::vector<Device> make_cards() {
  std::vector<Device> cards;
  // NVIDIA A10 Tensor Core GPU data sheet
  cards.push_back(card("a10", "NVIDIA A10 24GB", rates(49, 3120, 6250, 12500), 600, gibibytes(24),
                       kPcie4, 32, 72));
  // NVIDIA A100 Tensor Core GPU data sheet, SXM 80 GB
  cards.push_back(card("a100", "NVIDIA A100 80GB", rates(970, 1950, 15600, 31200), 2039,
                       gibibytes(80), kPcie4, 300, 108));
  // NVIDIA A100 Tensor Core GPU data sheet, SXM 40 GB
  cards.push_back(card("a100_40gb", "NVIDIA A100 40GB", rates(970, 1950, 15600, 31200), 1555,
                       gibibytes(40), kPcie4, 300, 108));
  // A core or two, for what runs there: it shares its memory with the host, so nothing is copied.
  cards.push_back({.name = "cpu",
                   .title = "CPU, a core or two",
                   .rates = rates(2, 5, 5, 2),
                   .bytes_per_second = 10 * kGiga,
                   .launch_ns = 3000,
                   .memory = Bytes(0),
                   .host_link = std::nullopt,
                   .peer_link = LinkSpeed{kGiga, kCollectiveCall}});
  // NVIDIA H100 Tensor Core GPU data sheet, SXM
  cards.push_back(card("h100", "NVIDIA H100 80GB", rates(3400, 6700, 49470, 98940), 3350,
                       gibibytes(80), kPcie5, 450, 132));
  // NVIDIA H200 Tensor Core GPU data sheet, SXM
  cards.push_back(card("h200", "NVIDIA H200 141GB", rates(3400, 6700, 49470, 98940), 4800,
                       Bytes(141 * kGiga), kPcie5, 450, 132));
  // NVIDIA L4 Tensor Core GPU data sheet
  cards.push_back(card("l4", "NVIDIA L4 24GB", rates(49, 3030, 6000, 12100), 300, gibibytes(24),
                       kPcie4, 32, 58));
  // NVIDIA L40S data sheet
  cards.push_back(card("l40s", "NVIDIA L40S 48GB", rates(143, 9160, 18300, 36200), 864,
                       gibibytes(48), kPcie4, 32, 142));
  // NVIDIA Tesla P100 data sheet, PCIe 16 GB. It has no tensor cores: half precision that
  // accumulates in f32 runs at the rate of f32.
  cards.push_back(card("p100", "NVIDIA P100 16GB", {{"f64", 4'700 * kGiga}, {"f32", 9'300 * kGiga}},
                       732, gibibytes(16), kPcie3, 12, 56));
  // NVIDIA Ampere GA102 architecture white paper, GeForce RTX 3090
  cards.push_back(card("rtx3090", "NVIDIA GeForce RTX 3090", rates(56, 3560, 3560, 7100), 936,
                       gibibytes(24), kPcie4, 32, 82));
  // NVIDIA Ada architecture white paper, GeForce RTX 4090
  cards.push_back(card("rtx4090", "NVIDIA GeForce RTX 4090", rates(129, 8260, 8260, 16520), 1008,
                       gibibytes(24), kPcie4, 32, 128));
  // NVIDIA Quadro RTX 8000 data sheet; its tensor cores know f16 alone. f64 from the Turing
  // architecture white paper, a 32nd of f32.
  cards.push_back(card("rtx8000", "NVIDIA Quadro RTX 8000",
                       {{"f64", 509 * kGiga}, {"f32", 16'300 * kGiga}, {"f16", 130'500 * kGiga}},
                       672, gibibytes(48), kPcie3, 50, 72));
  // NVIDIA V100 Tensor Core GPU data sheet, SXM2 32 GB; its tensor cores know f16 alone.
  cards.push_back(card("v100", "NVIDIA V100 32GB",
                       {{"f64", 7'800 * kGiga}, {"f32", 15'700 * kGiga}, {"f16", 125 * kTera}}, 900,
                       gibibytes(32), kPcie3, 150, 80));
  return cards;
}

}  // namespace

std::span<const Device> built_in_devices() {
  static const std::vector<Device> cards = make_cards();
  return cards;
}

const Device* find_built_in_device(std::string_view name) {
  const auto cards = built_in_devices();
  const auto found = std::ranges::find(cards, name, &Device::name);
  return found == cards.end() ? nullptr : &*found;
}

}  // namespace lowtide
