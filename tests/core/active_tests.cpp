// Rows restricted to active columns, against the rows of the store, while columns are dropped.
#include <algorithm>
#include <memory>
#include <numeric>
#include <utility>

#include "active.hpp"
#include "check.hpp"
#include "source.hpp"

using namespace onefit;
using namespace onefit::testing;

namespace {

constexpr std::size_t kRows = 300;
constexpr std::size_t kCols = 3;
constexpr std::size_t kPlenty = std::size_t{1} << 30;

std::unique_ptr<KernelStore> store_of(const std::vector<double>& x,
                                      std::vector<std::size_t> starts) {
  const DenseView<double> points{x.data(), kRows, kCols};
  return std::make_unique<KernelStore>(points_source(points, {KernelKind::Rbf, 0.3, 0.0, 1}),
                                       kPlenty, std::move(starts), std::size_t{0});
}

// Some of these columns, in their order.
std::vector<std::int32_t> some_of(const std::vector<std::int32_t>& columns, unsigned of,
                                  std::mt19937& random) {
  std::vector<std::int32_t> chosen;
  for (const std::int32_t column : columns) {
    if (random() % of != 0) chosen.push_back(column);
  }
  return chosen;
}

float entry_of(KernelStore& store, std::int32_t row, std::int32_t column) {
  float out = 0.0F;
  entries(store, {&row, 1}, {&column, 1}, &out);
  return out;
}

void check_row(KernelStore& store, ActiveSet& active, std::size_t position, ActiveRow& row) {
  active.row(position, {}, 1, {}, row);
  for (std::size_t p = 0; p < active.size(); ++p) {
    CHECK(active.entry(row, p) == entry_of(store, active.column(position), active.column(p)));
  }
}

}  // namespace

TEST(columns_are_gathered_also_in_place) {
  for_each_isa([] {
    std::mt19937 random(1);
    for (const std::size_t n : {1, 16, 17, 100, 500}) {
      for (const unsigned one_of : {1, 2, 20}) {
        const std::vector<double> drawn = normal(n, 2);
        const std::vector<float> row(drawn.begin(), drawn.end());
        Selected rising;
        Selected falling;
        for (std::size_t c = 0; c < n; ++c) {
          if (random() % one_of == 0) rising.add(c, 1);
        }
        for (std::size_t c = n; c-- > 0;) falling.add(c, 1);
        for (const Selected* selected : {&rising, &falling}) {
          const Columns columns = selected->columns();
          std::vector<float> to(n + 2 * kLanes, 7.0F);
          loops().gather(columns, row.data(), to.data());
          for (std::size_t c = 0; c < columns.count; ++c) CHECK(to[c] == row[columns.offsets[c]]);
          for (std::size_t c = columns.count + kLanes; c < to.size(); ++c) CHECK(to[c] == 7.0F);
        }
        const Columns columns = rising.columns();
        std::vector<float> in_place(row);
        in_place.resize(n + kLanes);
        loops().gather(columns, in_place.data(), in_place.data());
        for (std::size_t c = 0; c < columns.count; ++c) {
          CHECK(in_place[c] == row[columns.offsets[c]]);
        }
      }
    }
  });
}

// Kernel values as coarse ones, and coarse ones as they are; by single columns where they do not
// rise.
TEST(columns_are_gathered_as_coarse_ones) {
  for_each_isa([] {
    std::mt19937 random(7);
    for (const std::size_t n : {1, 16, 17, 100, 500}) {
      std::vector<float> row(n);
      for (float& value : row) value = static_cast<float>(random() % 1001) / 1000.0F;
      Selected rising;
      Selected falling;
      for (std::size_t c = 0; c < n; ++c) {
        if (c == 0 || random() % 3 != 0) rising.add(c, 1);
      }
      for (std::size_t c = n; c-- > 0;) falling.add(c, 1);
      for (const Selected* selected : {&rising, &falling}) {
        const Columns columns = selected->columns();
        std::vector<Coarse> coarse(n + 2 * kLanes, 7);
        loops().gather_as_coarse(columns, row.data(), coarse.data());
        for (std::size_t c = 0; c < columns.count; ++c) {
          const float wide = kCoarseUnit * static_cast<float>(coarse[c]);
          CHECK(std::abs(wide - row[columns.offsets[c]]) <= 0.51F * kCoarseUnit);
        }
        for (std::size_t c = columns.count + kLanes; c < coarse.size(); ++c) CHECK(coarse[c] == 7);
      }
      const Columns columns = rising.columns();
      std::vector<Coarse> units(n + kLanes);
      for (std::size_t c = 0; c < n; ++c) units[c] = static_cast<Coarse>(random());
      std::vector<Coarse> in_place(units);
      loops().gather_coarse(columns, in_place.data(), in_place.data());
      for (std::size_t c = 0; c < columns.count; ++c) {
        CHECK(in_place[c] == units[columns.offsets[c]]);
      }
    }
  });
}

TEST(coarse_rows_are_within_half_a_unit_while_columns_are_dropped) {
  const std::vector<double> x = normal(kRows * kCols, 8);
  for_each_isa([&] {
    for (const std::size_t cache_bytes : {std::size_t{0}, std::size_t{50'000}, kPlenty}) {
      const std::unique_ptr<KernelStore> store = store_of(x, {0, 90, 200});
      std::mt19937 random(9);
      std::vector<std::int32_t> columns(kRows);
      std::iota(columns.begin(), columns.end(), 0);
      ActiveSet active;
      for (int turn = 0; turn < 4; ++turn) {
        columns = some_of(columns, 3, random);
        CHECK(active.set(*store, columns, columns.size(), cache_bytes, true));
        active.note_rows();
        CHECK(active.coarse() && active.rows_stay());
        const std::size_t n = columns.size();
        std::vector<std::size_t> positions(n);
        std::iota(positions.begin(), positions.end(), 0);
        std::vector<double> entries(n);
        std::vector<double> sum(n, 0.0);
        std::vector<double> expected(n, 0.0);
        const std::vector<double> coef = normal(n, 10);
        for (std::size_t q = 0; q < n; ++q) {
          ActiveRow row;
          active.row(q, {}, 1, {}, row);
          active.entries(row, positions, entries.data());
          for (std::size_t p = 0; p < n; ++p) {
            const auto value = static_cast<double>(entry_of(*store, columns[q], columns[p]));
            CHECK(std::abs(entries[p] - value) <= 0.51 * static_cast<double>(kCoarseUnit));
            CHECK(static_cast<double>(kCoarseUnit) *
                      static_cast<double>(active.coarse_rows()[q][p]) ==
                  entries[p]);
            expected[p] += coef[q] * entries[p];
          }
        }
        NeverInterrupt never;
        CHECK(add_rows(active, positions, coef, 1, never, sum.data()));
        for (std::size_t p = 0; p < n; ++p) CHECK(std::abs(sum[p] - expected[p]) < 1e-9);
      }
      // Not from here on.
      columns.pop_back();
      CHECK(active.set(*store, columns, columns.size(), cache_bytes));
      CHECK(!active.coarse());
      ActiveRow row;
      for (std::size_t p = 0; p < columns.size(); ++p) check_row(*store, active, p, row);
    }
  });
}

TEST(rows_of_two_groups_or_of_other_kernels_are_not_coarse) {
  const std::vector<double> x = normal(kRows * kCols, 11);
  std::mt19937 random(12);
  std::vector<std::int32_t> columns(kRows);
  std::iota(columns.begin(), columns.end(), 0);
  columns = some_of(columns, 3, random);
  ActiveSet active;
  const std::unique_ptr<KernelStore> rbf = store_of(x, {0});
  active.set(*rbf, columns, columns.size() / 2, kPlenty, true);
  CHECK(!active.coarse());
  const DenseView<double> points{x.data(), kRows, kCols};
  KernelStore linear(points_source(points, {KernelKind::Linear, 1.0, 0.0, 1}), kPlenty);
  active.set(linear, columns, columns.size(), kPlenty, true);
  CHECK(!active.coarse());
}

TEST(rows_stay_right_while_columns_are_dropped) {
  const std::vector<double> x = normal(kRows * kCols, 3);
  for_each_isa([&] {
    for (const std::vector<std::size_t>& starts :
         {std::vector<std::size_t>{0}, std::vector<std::size_t>{0, 90, 200}}) {
      for (const std::size_t cache_bytes : {std::size_t{0}, std::size_t{50'000}, kPlenty}) {
        const std::unique_ptr<KernelStore> store = store_of(x, starts);
        std::mt19937 random(4);
        std::vector<std::int32_t> columns(kRows);
        std::iota(columns.begin(), columns.end(), 0);
        ActiveSet active;
        for (int turn = 0; turn < 6; ++turn) {
          columns = some_of(columns, turn % 2 == 0 ? 3 : 2, random);
          CHECK(active.set(*store, columns, columns.size() / 2, cache_bytes));
          active.note_rows();
          ActiveRow row;
          for (std::size_t k = 0; k < columns.size(); ++k) {
            check_row(*store, active, random() % columns.size(), row);
          }
        }
        // Others than were there.
        columns.resize(kRows);
        std::iota(columns.begin(), columns.end(), 0);
        columns = some_of(columns, 2, random);
        CHECK(active.set(*store, columns, columns.size(), cache_bytes));
        ActiveRow row;
        for (std::size_t p = 0; p < columns.size(); ++p) check_row(*store, active, p, row);
      }
    }
  });
}

TEST(rows_that_are_there_are_not_gathered_again) {
  const std::vector<double> x = normal(kRows * kCols, 5);
  const std::unique_ptr<KernelStore> store = store_of(x, {0});
  std::mt19937 random(6);
  std::vector<std::int32_t> columns(kRows);
  std::iota(columns.begin(), columns.end(), 0);
  columns = some_of(columns, 3, random);
  ActiveSet active;
  active.set(*store, columns, columns.size(), kPlenty);
  ActiveRow row;
  const std::size_t last = columns.size() - 1;
  check_row(*store, active, 0, row);
  check_row(*store, active, last, row);
  const float* where = row.at(active.segments()[0]);
  std::vector<std::int32_t> fewer = some_of(columns, 2, random);
  if (fewer.back() != columns.back()) fewer.push_back(columns.back());
  active.set(*store, fewer, fewer.size(), kPlenty);
  check_row(*store, active, fewer.size() - 1, row);
  CHECK(row.at(active.segments()[0]) == where);
}
