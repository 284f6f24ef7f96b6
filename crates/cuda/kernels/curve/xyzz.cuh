// Points as (X, Y, ZZ, ZZZ) with x = X / ZZ, y = Y / ZZZ, ZZ^3 = ZZZ^2, on y^2 = x^3 + b.
//
// Formulas are named as in the Explicit-Formulas Database, "XYZZ coordinates for short
// Weierstrass curves", with a = 0. Every function but `add_distinct` is complete: infinity
// (ZZ = 0), equal and opposite points give the right result.

#pragma once

#include "affine.cuh"

namespace cuzk {

template <class F>
struct Xyzz {
    using Field = F;

    F x, y, zz, zzz;

    CUZK_FN static Xyzz infinity() { return {F::zero(), F::zero(), F::zero(), F::zero()}; }

    CUZK_FN static Xyzz from_affine(const Affine<F> &point) {
        if (point.is_infinity()) return infinity();
        return {point.x, point.y, F::one(), F::one()};
    }

    CUZK_FN bool is_infinity() const { return zz.is_zero(); }

    CUZK_FN Xyzz operator-() const { return {x, -y, zz, zzz}; }

    // dbl-2008-s-1: 6 M + 3 S. Infinity stays infinity.
    CUZK_FN Xyzz doubled() const {
        F u = y.doubled();
        F v = u.squared();
        F w = u * v;
        F s = x * v;
        F m = x.squared();
        m = m.doubled() + m;
        F x3 = m.squared() - s.doubled();
        return {x3, m * (s - x3) - w * y, v * zz, w * zzz};
    }

    // mdbl-2008-s-1: 4 M + 3 S.
    CUZK_FN static Xyzz double_affine(const Affine<F> &point) {
        F u = point.y.doubled();
        F v = u.squared();
        F w = u * v;
        F s = point.x * v;
        F m = point.x.squared();
        m = m.doubled() + m;
        F x3 = m.squared() - s.doubled();
        return {x3, m * (s - x3) - w * point.y, v, w};
    }

    // madd-2008-s: 8 M + 2 S.
    CUZK_FN void add(const Affine<F> &point) {
        if (point.is_infinity()) return;
        if (is_infinity()) {
            *this = {point.x, point.y, F::one(), F::one()};
            return;
        }
        F p = point.x * zz - x;
        F r = point.y * zzz - y;
        if (p.is_zero()) {
            *this = r.is_zero() ? double_affine(point) : infinity();
            return;
        }
        finish_mixed_addition(p, r);
    }

    // The same for points that are known to differ, also from each other's opposite and from infinity.
    CUZK_FN void add_distinct(const Affine<F> &point) {
        finish_mixed_addition(point.x * zz - x, point.y * zzz - y);
    }

    // add-2008-s: 12 M + 2 S.
    CUZK_FN void add(const Xyzz &other) {
        if (other.is_infinity()) return;
        if (is_infinity()) {
            *this = other;
            return;
        }
        F u1 = x * other.zz;
        F s1 = y * other.zzz;
        F p = other.x * zz - u1;
        F r = other.y * zzz - s1;
        if (p.is_zero()) {
            *this = r.is_zero() ? doubled() : infinity();
            return;
        }
        F pp = p.squared();
        zz = zz * other.zz * pp;
        F ppp = p * pp;
        zzz = zzz * other.zzz * ppp;
        finish_addition(u1 * pp, s1 * ppp, ppp, r);
    }

    // The affine point: one inversion, 3 M + 1 S. 1 / ZZ = (ZZ / ZZZ)^2.
    CUZK_FN Affine<F> to_affine() const {
        F over_zzz = inverse(zzz);
        F over_zz = (zz * over_zzz).squared();
        return {x * over_zz, y * over_zzz};
    }

    // Whether both are the same point, in whatever coordinates: 4 M.
    CUZK_FN friend bool same_point(const Xyzz &p, const Xyzz &q) {
        if (p.is_infinity() || q.is_infinity()) return p.is_infinity() && q.is_infinity();
        return p.x * q.zz == q.x * p.zz && p.y * q.zzz == q.y * p.zzz;
    }

  private:
    CUZK_FN void finish_mixed_addition(const F &p, const F &r) {
        F pp = p.squared();
        zz *= pp;
        F ppp = p * pp;
        zzz *= ppp;
        finish_addition(x * pp, y * ppp, ppp, r);
    }

    // The common end of both additions: X3 = R^2 - PPP - 2 Q, Y3 = R (Q - X3) - S1 PPP.
    CUZK_FN void finish_addition(const F &q, const F &s1_ppp, const F &ppp, const F &r) {
        x = r.squared() - ppp - q.doubled();
        y = r * (q - x) - s1_ppp;
    }
};

using G1Xyzz = Xyzz<Fp>;
using G2Xyzz = Xyzz<Fp2>;

}  // namespace cuzk
