// Points as (X, Y, Z) with x = X / Z^2, y = Y / Z^3, on y^2 = x^3 + b: for chains of doublings, which
// cost 2 M + 5 S against 6 M + 3 S of XYZZ coordinates.
//
// Products are calls: a doubling and an addition are 26 KB of code so, 120 KB without.
//
// Formulas are named as in the Explicit-Formulas Database, "Jacobian coordinates with a4=0 for
// short Weierstrass curves". Every function is complete.

#pragma once

#include "field/calls.cuh"
#include "xyzz.cuh"

namespace cuzk {

template <class F>
struct Jacobian {
    F x, y, z;

    CUZK_FN static Jacobian infinity() { return {F::zero(), F::zero(), F::zero()}; }

    CUZK_FN static Jacobian from_affine(const Affine<F> &point) {
        if (point.is_infinity()) return infinity();
        return {point.x, point.y, F::one()};
    }

    CUZK_FN bool is_infinity() const { return z.is_zero(); }

    // dbl-2009-l: 2 M + 5 S. Infinity stays infinity.
    __device__ __forceinline__ void double_in_place() {
        F a = square_call(x);
        F b = square_call(y);
        F c = square_call(b);
        F d = (square_call(x + b) - a - c).doubled();
        F e = a.doubled() + a;
        z = product_call(y, z).doubled();
        x = square_call(e) - d.doubled();
        y = product_call(e, d - x) - c.doubled().doubled().doubled();
    }

    // madd: 8 M + 3 S.
    __device__ __forceinline__ void add(const Affine<F> &point) {
        if (point.is_infinity()) return;
        if (is_infinity()) {
            *this = from_affine(point);
            return;
        }
        F zz = square_call(z);
        F h = product_call(point.x, zz) - x;
        F r = product_call(point.y, product_call(z, zz)) - y;
        finish_addition(h, r);
    }

    // add-1998-cmo-2: 12 M + 4 S.
    __device__ __forceinline__ void add(const Jacobian &other) {
        if (other.is_infinity()) return;
        if (is_infinity()) {
            *this = other;
            return;
        }
        F zz = square_call(z);
        F u = product_call(other.x, zz);
        F s = product_call(other.y, product_call(z, zz));
        zz = square_call(other.z);
        x = product_call(x, zz);
        y = product_call(y, product_call(other.z, zz));
        z = product_call(z, other.z);
        finish_addition(u - x, s - y);
    }

    __device__ __forceinline__ Xyzz<F> to_xyzz() const {
        F zz = square_call(z);
        return {x, y, zz, product_call(zz, z)};
    }

  private:
    // The common end of both additions, of points (x, y) and (x + h, y + r) over the denominators of z:
    // 5 M + 2 S.
    __device__ __forceinline__ void finish_addition(const F &h, const F &r) {
        if (h.is_zero()) {
            *this = r.is_zero() ? twice(*this) : infinity();
            return;
        }
        F hh = square_call(h);
        F hhh = product_call(h, hh);
        F v = product_call(x, hh);
        z = product_call(z, h);
        x = square_call(r) - hhh - v.doubled();
        y = product_call(r, v - x) - product_call(y, hhh);
    }

    // Rare: a call, so that the loop's code stays short.
    CUZK_NOINLINE __device__ static Jacobian twice(Jacobian point) {
        point.double_in_place();
        return point;
    }
};

}  // namespace cuzk
