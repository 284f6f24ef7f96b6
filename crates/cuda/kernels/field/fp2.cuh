// The quadratic extension Fp2 = Fp[u] / (u^2 + 1).

#pragma once

#include "fp.cuh"
#include "inverse.cuh"

// A product of Fp2 is long: as a call, with everything in registers, it keeps kernels within the
// instruction cache and the compiler's time within reason.
#if defined(__CUDACC__)
#define CUZK_FP2_CALL __host__ __device__ __noinline__
#else
#define CUZK_FP2_CALL
#endif

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

    // Karatsuba: three products for four, and two reductions for three.
    //   c1 = (x0 + x1)(y0 + y1) - x0 y0 - x1 y1,  c0 = x0 y0 - x1 y1.
    // Products are in (0, 4 p^2), and 4 p < R. c1 = x0 y1 + x1 y0 < 2 p^2 without reduction; c0 is
    // made positive by p R.
    CUZK_FP2_CALL static Fp2 product(Fp2 x, Fp2 y) {
        Wide<Fp::N> low = Fp::multiply_wide(x.c0, y.c0);
        Wide<Fp::N> high = Fp::multiply_wide(x.c1, y.c1);
        Wide<Fp::N> both = Fp::multiply_wide(unreduced_sum(x.c0, x.c1), unreduced_sum(y.c0, y.c1));
        subtract(both, low);
        subtract(both, high);
        uint32_t negative = subtract(low, high);
        Carry carry;
        low.limb[Fp::N] = add_cc(low.limb[Fp::N], FpModulus::p(0) & negative, carry);
#pragma unroll
        for (int i = 1; i < Fp::N - 1; i++) {
            low.limb[Fp::N + i] = addc_cc(low.limb[Fp::N + i], FpModulus::p(i) & negative, carry);
        }
        low.limb[2 * Fp::N - 1] =
            addc(low.limb[2 * Fp::N - 1], FpModulus::p(Fp::N - 1) & negative, carry);
        return {Fp::reduce(low), Fp::reduce(both)};
    }

    CUZK_FN friend Fp2 operator*(const Fp2 &x, const Fp2 &y) { return product(x, y); }

    // (x0 + x1 u)^2 = (x0 + x1)(x0 - x1) + 2 x0 x1 u: two products.
    CUZK_FP2_CALL static Fp2 square(Fp2 x) {
        Fp half = x.c0 * x.c1;
        return {(x.c0 - x.c1) * unreduced_sum(x.c0, x.c1), half.doubled()};
    }

    CUZK_FN Fp2 squared() const { return square(*this); }

  private:
    // x -= y; all ones if that is negative, 0 otherwise.
    CUZK_FN static uint32_t subtract(Wide<Fp::N> &x, const Wide<Fp::N> &y) {
        Carry carry;
        x.limb[0] = sub_cc(x.limb[0], y.limb[0], carry);
#pragma unroll
        for (int i = 1; i < 2 * Fp::N; i++) x.limb[i] = subc_cc(x.limb[i], y.limb[i], carry);
        return subc(0, 0, carry);
    }

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
