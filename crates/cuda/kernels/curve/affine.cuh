// Affine points of y^2 = x^3 + b, and the two curves of BLS12-381.

#pragma once

#include "../field/fp2.cuh"

namespace cuzk {

// (x, y), in blst's order; (0, 0), which is on neither curve, is the point at infinity.
template <class F>
struct Affine {
    using Field = F;

    F x, y;

    CUZK_FN static Affine infinity() { return {F::zero(), F::zero()}; }

    CUZK_FN bool is_infinity() const { return x.is_zero() && y.is_zero(); }

    CUZK_FN Affine operator-() const { return {x, -y}; }

    CUZK_FN friend bool operator==(const Affine &p, const Affine &q) {
        return p.x == q.x && p.y == q.y;
    }
    CUZK_FN friend bool operator!=(const Affine &p, const Affine &q) { return !(p == q); }

    // y^2 = x^3 + b; false for infinity.
    CUZK_FN bool is_on_curve(const F &b) const {
        return y.squared() == x.squared() * x + b;
    }
};

using G1Affine = Affine<Fp>;
using G2Affine = Affine<Fp2>;

static_assert(sizeof(G1Affine) == 96 && sizeof(G2Affine) == 192, "as blst lays them out");

// b = 4.
CUZK_FN Fp curve_b(const Fp *) { return Fp::one().doubled().doubled(); }

// b = 4 (1 + u).
CUZK_FN Fp2 curve_b(const Fp2 *) {
    Fp four = Fp::one().doubled().doubled();
    return {four, four};
}

template <class F>
CUZK_FN bool is_on_curve(const Affine<F> &point) {
    return point.is_on_curve(curve_b(static_cast<const F *>(nullptr)));
}

}  // namespace cuzk
