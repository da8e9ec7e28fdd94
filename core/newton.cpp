#include "newton.hpp"

#include <algorithm>
#include <cmath>

#include "lapack.hpp"

namespace onefit {
namespace {

// A ridge is added to the diagonal, as a part of its mean: rounding makes a matrix that is singular
// in truth slightly indefinite. Where it is too small it is raised, up to this many times tenfold.
// The residual is kept free of it, so that repeating the step removes what it changed.
constexpr int kRidges = 3;
constexpr int kRepeats = 3;
// A residual is even when it has shrunk to this part of what it was.
constexpr double kEven = 1e-9;
// So many variables may meet their bounds in one step; SMO then looks who is free.
constexpr std::size_t kMostBlocked = 32;

class Step {
 public:
  explicit Step(FreeVariables& free)
      : free_(free), n_(static_cast<int>(free.size())), fixed_(free.size(), false) {}

  std::vector<double> run() {
    if (!factorise()) return {};
    std::vector<double> step(free_.size(), 0.0);
    for (std::uint8_t group = 0; group < 2; ++group) {
      std::vector<double> ones(free_.size(), 0.0);
      for (std::size_t i = 0; i < ones.size(); ++i) ones[i] = free_.group[i] == group ? 1.0 : 0.0;
      if (std::any_of(ones.begin(), ones.end(), [](double v) { return v != 0.0; })) {
        group_column_[group] = border_.size();
        add_to_border(std::move(ones));
      }
    }
    const double first = unevenness();
    for (int repeats = 0; repeats < kRepeats && border_.size() < kMostBlocked;) {
      if (!solve()) break;
      const double share = move(step);
      if (share < 1.0) continue;
      ++repeats;
      if (unevenness() <= kEven * first) break;
    }
    balance(step);
    return step;
  }

 private:
  bool factorise() {
    const std::size_t n = free_.size();
    double mean = 0.0;
    for (std::size_t i = 0; i < n; ++i) mean += free_.matrix[i * n + i] / static_cast<double>(n);
    ridge_ = free_.ridge * mean;
    for (int k = 0; k < kRidges; ++k, ridge_ *= 10.0) {
      factor_ = free_.matrix;
      for (std::size_t i = 0; i < n; ++i) factor_[i * n + i] += ridge_;
      char lower = 'L';
      int info = 0;
      lapack().potrf(&lower, &n_, factor_.data(), &n_, &info);
      if (info == 0) return true;
    }
    return false;
  }

  void substitute(char transposed, std::vector<double>& x) {
    char lower = 'L';
    char diagonal = 'N';
    int one = 1;
    lapack().trsv(&lower, &transposed, &diagonal, &n_, factor_.data(), &n_, x.data(), &one);
  }

  static double dot(const std::vector<double>& a, const std::vector<double>& b) {
    double sum = 0.0;
    for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
    return sum;
  }

  // One more condition column'd = 0; the border holds L^-1 column.
  void add_to_border(std::vector<double> column) {
    substitute('N', column);
    border_.push_back(std::move(column));
    std::vector<double> products;
    for (const std::vector<double>& other : border_) products.push_back(dot(other, border_.back()));
    products_.push_back(std::move(products));
  }

  // direction_ and multipliers_ of the bordered system, through the Schur complement of the border.
  bool solve() {
    std::vector<double> a = free_.residual;
    substitute('N', a);
    const std::size_t m = border_.size();
    std::vector<double> schur(m * m);
    multipliers_.resize(m);
    for (std::size_t i = 0; i < m; ++i) {
      multipliers_[i] = dot(border_[i], a);
      for (std::size_t j = 0; j <= i; ++j) schur[j * m + i] = products_[i][j];
    }
    char lower = 'L';
    char plain = 'N';
    char transposed = 'T';
    int size = static_cast<int>(m);
    int one = 1;
    int info = 0;
    lapack().potrf(&lower, &size, schur.data(), &size, &info);
    if (info != 0) return false;
    lapack().trsv(&lower, &plain, &plain, &size, schur.data(), &size, multipliers_.data(), &one);
    lapack().trsv(&lower, &transposed, &plain, &size, schur.data(), &size, multipliers_.data(),
                  &one);
    for (std::size_t j = 0; j < m; ++j) {
      for (std::size_t i = 0; i < a.size(); ++i) a[i] -= multipliers_[j] * border_[j][i];
    }
    substitute('T', a);
    direction_ = std::move(a);
    return true;
  }

  // Goes along direction_ to the first bound; returns which share of it that was.
  double move(std::vector<double>& step) {
    double share = 1.0;
    std::size_t blocking = step.size();
    for (std::size_t i = 0; i < step.size(); ++i) {
      if (fixed_[i]) continue;
      const double room =
          direction_[i] > 0.0 ? free_.room_up[i] - step[i] : free_.room_down[i] + step[i];
      if (std::abs(direction_[i]) * share > room) {
        share = std::max(0.0, room / std::abs(direction_[i]));
        blocking = i;
      }
    }
    for (std::size_t i = 0; i < step.size(); ++i) {
      if (fixed_[i]) continue;
      step[i] += share * direction_[i];
      free_.residual[i] -= share * (free_.residual[i] - offset(i) - ridge_ * direction_[i]);
    }
    if (blocking < step.size()) {
      step[blocking] =
          direction_[blocking] > 0.0 ? free_.room_up[blocking] : -free_.room_down[blocking];
      fixed_[blocking] = true;
      std::vector<double> unit(step.size(), 0.0);
      unit[blocking] = 1.0;
      add_to_border(std::move(unit));
    }
    return share;
  }

  // Takes what rounding has left of the sum of each group from one variable: the one with most
  // room, of those that are not at a bound if they have enough.
  void balance(std::vector<double>& step) const {
    for (std::uint8_t group = 0; group < 2; ++group) {
      double sum = 0.0;
      for (std::size_t i = 0; i < step.size(); ++i) sum += free_.group[i] == group ? step[i] : 0.0;
      for (const bool also_fixed : {false, true}) {
        double most = 0.0;
        std::size_t widest = 0;
        for (std::size_t i = 0; i < step.size(); ++i) {
          if (free_.group[i] != group || (fixed_[i] && !also_fixed)) continue;
          const double room = sum > 0.0 ? free_.room_down[i] + step[i] : free_.room_up[i] - step[i];
          if (room > most) {
            most = room;
            widest = i;
          }
        }
        if (std::abs(sum) <= most) {
          step[widest] -= sum;
          break;
        }
      }
    }
  }

  double offset(std::size_t i) const { return multipliers_[group_column_[free_.group[i]]]; }

  // How far residuals of a group are apart.
  double unevenness() const {
    double largest = 0.0;
    for (std::uint8_t group = 0; group < 2; ++group) {
      double low = 0.0;
      double high = 0.0;
      bool any = false;
      for (std::size_t i = 0; i < free_.size(); ++i) {
        if (fixed_[i] || free_.group[i] != group) continue;
        low = any ? std::min(low, free_.residual[i]) : free_.residual[i];
        high = any ? std::max(high, free_.residual[i]) : free_.residual[i];
        any = true;
      }
      largest = std::max(largest, high - low);
    }
    return largest;
  }

  FreeVariables& free_;
  int n_;
  std::vector<double> factor_;
  double ridge_ = 0.0;
  std::vector<bool> fixed_;
  std::size_t group_column_[2] = {0, 0};
  std::vector<std::vector<double>> border_;
  std::vector<std::vector<double>> products_;
  std::vector<double> multipliers_;
  std::vector<double> direction_;
};

}  // namespace

std::vector<double> newton_step(FreeVariables& free) {
  if (free.size() == 0 || !lapack().available()) return {};
  return Step(free).run();
}

}  // namespace onefit
