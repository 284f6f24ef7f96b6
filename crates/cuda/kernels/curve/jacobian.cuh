// Points as (X, Y, Z) with x = X / Z^2, y = Y / Z^3, on y^2 = x^3 + b: for chains of doublings, which
// cost 2 M + 5 S against 6 M + 3 S of XYZZ coordinates.
//
// Formulas are named as in the Explicit-Formulas Database, "Jacobian coordinates with a4=0 for
// short Weierstrass curves". Every function is complete.

#pragma once

#include "common/kernel.cuh"
#include "xyzz.cuh"

namespace cuzk {

template <class F>
struct Jacobian {
    F x, y, z;

    CUZK_FN static Jacobian infinity() { return {F::zero(), F::zero(), F::zero()}; }

    CUZK_FN bool is_infinity() const { return z.is_zero(); }

    // dbl-2009-l: 2 M + 5 S. Infinity stays infinity.
    CUZK_FN void double_in_place() {
        F a = x.squared();
        F b = y.squared();
        F c = b.squared();
        F d = ((x + b).squared() - a - c).doubled();
        F e = a.doubled() + a;
        z = (y * z).doubled();
        x = e.squared() - d.doubled();
        y = e * (d - x) - c.doubled().doubled().doubled();
    }

    // madd: 8 M + 3 S.
    __device__ __forceinline__ void add(const Affine<F> &point) {
        if (point.is_infinity()) return;
        if (is_infinity()) {
            *this = {point.x, point.y, F::one()};
            return;
        }
        F zz = z.squared();
        F h = point.x * zz - x;
        F r = point.y * (z * zz) - y;
        if (h.is_zero()) {
            // Rare: a call, so that the loop's code stays short.
            *this = r.is_zero() ? twice(*this) : infinity();
            return;
        }
        F hh = h.squared();
        F hhh = h * hh;
        F v = x * hh;
        z *= h;
        x = r.squared() - hhh - v.doubled();
        y = r * (v - x) - y * hhh;
    }

    CUZK_FN Xyzz<F> to_xyzz() const {
        F zz = z.squared();
        return {x, y, zz, zz * z};
    }

  private:
    CUZK_NOINLINE __device__ static Jacobian twice(Jacobian point) {
        point.double_in_place();
        return point;
    }
};

}  // namespace cuzk
