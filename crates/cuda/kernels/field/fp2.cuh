// The quadratic extension Fp2 = Fp[u] / (u^2 + 1).

#pragma once

#include "fp.cuh"
#include "inverse.cuh"

namespace cuzk {

// c0 + c1 u, in blst's order.
struct Fp2 {
    Fp c0, c1;

    CUZK_FN static Fp2 zero() { return {Fp::zero(), Fp::zero()}; }
    CUZK_FN static Fp2 one() { return {Fp::one(), Fp::zero()}; }

    CUZK_FN bool is_zero() const { return c0.is_zero() && c1.is_zero(); }

    CUZK_FN friend bool operator==(const Fp2 &x, const Fp2 &y) {
        return x.c0 == y.c0 && x.c1 == y.c1;
    }
    CUZK_FN friend bool operator!=(const Fp2 &x, const Fp2 &y) { return !(x == y); }

    CUZK_FN friend Fp2 operator+(const Fp2 &x, const Fp2 &y) {
        return {x.c0 + y.c0, x.c1 + y.c1};
    }
    CUZK_FN friend Fp2 operator-(const Fp2 &x, const Fp2 &y) {
        return {x.c0 - y.c0, x.c1 - y.c1};
    }
    CUZK_FN Fp2 operator-() const { return {-c0, -c1}; }
    CUZK_FN Fp2 doubled() const { return {c0.doubled(), c1.doubled()}; }

    CUZK_FN Fp2 &operator+=(const Fp2 &other) { return *this = *this + other; }
    CUZK_FN Fp2 &operator-=(const Fp2 &other) { return *this = *this - other; }
    CUZK_FN Fp2 &operator*=(const Fp2 &other) { return *this = *this * other; }

    // Karatsuba: three products for four.
    //   c1 = (x0 + x1)(y0 + y1) - x0 y0 - x1 y1,  c0 = x0 y0 - x1 y1.
    CUZK_FN friend Fp2 operator*(const Fp2 &x, const Fp2 &y) {
        Fp low = x.c0 * y.c0;
        Fp high = x.c1 * y.c1;
        // Sums below 2 p need no reduction: 4 p^2 < p R.
        Fp both = unreduced_sum(x.c0, x.c1) * unreduced_sum(y.c0, y.c1);
        return {low - high, both - low - high};
    }

    // (x0 + x1 u)^2 = (x0 + x1)(x0 - x1) + 2 x0 x1 u: two products.
    CUZK_FN Fp2 squared() const {
        Fp product = c0 * c1;
        return {unreduced_sum(c0, c1) * (c0 - c1), product.doubled()};
    }

  private:
    // x + y, below 2 p: a factor for one product, which takes factors with x y < p R.
    CUZK_FN static Fp unreduced_sum(const Fp &x, const Fp &y) {
        Fp sum;
        Carry carry;
        sum.limb[0] = add_cc(x.limb[0], y.limb[0], carry);
#pragma unroll
        for (int i = 1; i < Fp::N - 1; i++) sum.limb[i] = addc_cc(x.limb[i], y.limb[i], carry);
        sum.limb[Fp::N - 1] = addc(x.limb[Fp::N - 1], y.limb[Fp::N - 1], carry);
        return sum;
    }
};

static_assert(sizeof(Fp2) == 96, "as blst lays it out");

// 1/x = (x0 - x1 u) / (x0^2 + x1^2); 0 for 0. The norm is zero for x = 0 alone, since -1 is not
// a square in Fp.
CUZK_FN Fp2 inverse(const Fp2 &x) {
    Fp over_norm = inverse(x.c0.squared() + x.c1.squared());
    return {x.c0 * over_norm, -(x.c1 * over_norm)};
}

}  // namespace cuzk
