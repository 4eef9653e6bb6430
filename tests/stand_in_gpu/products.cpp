// cuBLAS and cuBLASLt: products that take as long as their sizes say.
//
// Declared here, since the headers of these libraries need more of CUDA's compiler than PyTorch's
// packages have.
#include <algorithm>
#include <cstdint>

#include "gpu.h"

using namespace lowtide::gpu;

namespace {

struct Handle {
  cudaStream_t stream = nullptr;
  int pointer_mode = 0;
  int math_mode = 0;
};

struct Layout {
  int type = 0;
  std::uint64_t rows = 0, columns = 0;
  int count = 1;
};

struct Algorithm {  // cublasLtMatmulHeuristicResult_t
  std::uint64_t opaque[8];
  std::size_t workspace;
  int state;
  float waves;
  int reserved[4];
};

constexpr int kBatchCount = 5;  // CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT

int run(const Handle* handle, int m, int n, int k, int count, int type) {
  queue(handle->stream, product(m, n, k, count, type));
  return 0;
}

struct Empty {
  std::uint64_t opaque[32] = {};
};

}  // namespace

LOWTIDE_CALL int cublasCreate_v2(Handle** made) {
  *made = new Handle;
  return 0;
}

LOWTIDE_CALL int cublasSetStream_v2(Handle* handle, cudaStream_t stream) {
  handle->stream = stream;
  return 0;
}

LOWTIDE_CALL int cublasGetPointerMode_v2(const Handle* handle, int* mode) {
  *mode = handle->pointer_mode;
  return 0;
}

LOWTIDE_CALL int cublasSetPointerMode_v2(Handle* handle, int mode) {
  handle->pointer_mode = mode;
  return 0;
}

LOWTIDE_CALL int cublasGetMathMode(const Handle* handle, int* mode) {
  *mode = handle->math_mode;
  return 0;
}

LOWTIDE_CALL int cublasSetMathMode(Handle* handle, int mode) {
  handle->math_mode = mode;
  return 0;
}

LOWTIDE_CALL int cublasSgemm_v2(const Handle* handle, int, int, int m, int n, int k, ...) {
  return run(handle, m, n, k, 1, CUDA_R_32F);
}
LOWTIDE_CALL int cublasDgemm_v2(const Handle* handle, int, int, int m, int n, int k, ...) {
  return run(handle, m, n, k, 1, CUDA_R_64F);
}
LOWTIDE_CALL int cublasSgemv_v2(const Handle* handle, int, int m, int n, ...) {
  return run(handle, m, 1, n, 1, CUDA_R_32F);
}

LOWTIDE_CALL int cublasGemmEx(const Handle* handle, int, int, int m, int n, int k, const void*,
                              const void*, int type, ...) {
  return run(handle, m, n, k, 1, type);
}

LOWTIDE_CALL int cublasSgemmEx(const Handle* handle, int, int, int m, int n, int k, const void*,
                               const void*, int type, ...) {
  return run(handle, m, n, k, 1, type);
}

LOWTIDE_CALL int cublasSgemmStridedBatched(const Handle* handle, int, int, int m, int n, int k,
                                           const void*, const void*, int, long long, const void*,
                                           int, long long, const void*, void*, int, long long,
                                           int count) {
  return run(handle, m, n, k, count, CUDA_R_32F);
}

LOWTIDE_CALL int cublasDgemmStridedBatched(const Handle* handle, int, int, int m, int n, int k,
                                           const void*, const void*, int, long long, const void*,
                                           int, long long, const void*, void*, int, long long,
                                           int count) {
  return run(handle, m, n, k, count, CUDA_R_64F);
}

LOWTIDE_CALL int cublasGemmStridedBatchedEx(const Handle* handle, int, int, int m, int n, int k,
                                            const void*, const void*, int type, int, long long,
                                            const void*, int, int, long long, const void*, void*,
                                            int, int, long long, int count, int, int) {
  return run(handle, m, n, k, count, type);
}

LOWTIDE_CALL std::size_t cublasLtGetVersion() { return 130100; }

LOWTIDE_CALL int cublasLtMatmulDescCreate(Empty** made, int, int) {
  *made = new Empty;
  return 0;
}

LOWTIDE_CALL int cublasLtMatmulDescDestroy(Empty* made) {
  delete made;
  return 0;
}

LOWTIDE_CALL int cublasLtMatmulPreferenceCreate(Empty** made) {
  return cublasLtMatmulDescCreate(made, 0, 0);
}
LOWTIDE_CALL int cublasLtMatmulPreferenceDestroy(Empty* made) {
  return cublasLtMatmulDescDestroy(made);
}

LOWTIDE_CALL int cublasLtMatrixLayoutCreate(Layout** made, int type, std::uint64_t rows,
                                            std::uint64_t columns, std::int64_t) {
  *made = new Layout{type, rows, columns};
  return 0;
}

LOWTIDE_CALL int cublasLtMatrixLayoutDestroy(Layout* layout) {
  delete layout;
  return 0;
}

LOWTIDE_CALL int cublasLtMatrixLayoutSetAttribute(Layout* layout, int which, const void* value,
                                                  std::size_t) {
  if (which == kBatchCount) layout->count = *static_cast<const int*>(value);
  return 0;
}

LOWTIDE_CALL int cublasLtMatmulAlgoGetHeuristic(void*, void*, void*, void*, void*, void*, void*,
                                                int, Algorithm* made, int* count) {
  *made = {};
  *count = 1;
  return 0;
}

LOWTIDE_CALL int cublasLtMatmul(void*, void*, const void*, const void*, const Layout* a,
                                const void*, const Layout*, const void*, const void*, const Layout*,
                                void*, const Layout* d, const void*, void*, std::size_t,
                                cudaStream_t stream) {
  const double inner = static_cast<double>(a->rows) * static_cast<double>(a->columns) /
                       static_cast<double>(std::max<std::uint64_t>(1, d->rows));
  queue(stream, product(static_cast<double>(d->rows), static_cast<double>(d->columns), inner,
                        d->count, a->type));
  return 0;
}
