// Inversion modulo a prime by division steps (Bernstein, Yang, "Fast constant-time gcd
// computation and modular inversion", 2019), in the variant that starts at delta = 1/2:
//
//     delta > 0 and g odd:  (delta, f, g) <- (1 - delta, g, (g - f) / 2)
//     otherwise:            (delta, f, g) <- (1 + delta, f, (g + (g mod 2) f) / 2)
//
// From f = p and 0 <= g < p on, g becomes 0 after at most (45907 b + 26313) / 19929 steps for a
// p of b bits (Wuille, "Bounds on divsteps iterations in safegcd", 2021): 878 for Fp, 588 for Fr.
// Then f is 1 or -1 (or still p, for g = 0), and further steps leave it so. Random values take
// 769 steps (Fp) and 515 (Fr) on average, with a standard deviation of 7: the lanes of a warp are
// done in the same round of 30 steps or in the next, so that leaving early pays.
//
// Thirty steps depend on the lowest thirty bits of f and g alone. They are done on single words
// and give a matrix T with T (f, g) = 2^30 (f', g'); only then are the long numbers multiplied by
// it. d and e with d x = f and e x = g (mod p) are multiplied as well, but divided by 2^32: a
// multiple of p makes that exact. After n rounds d x = f / 4^n (mod p), and one product with
// 4^n R^3 gives 1/x in Montgomery form.
//
// A round is 600 instructions for Fp, 124 of them IMAD.WIDE; half are the steps on single words.
//
// Both pairs are in limbs for which a column of products needs no carry flag, since the
// multiply-add with a 64-bit accumulator is signed and has room to spare:
//   f, g: base 2^30, all limbs in [0, 2^30) but the top one, which carries the sign;
//   d, e: base 2^32, all limbs in [-2^31, 2^31). Dividing by 2^32 just drops the lowest limb.

#pragma once

#include "fp.cuh"
#include "fr.cuh"

namespace cuzk {
namespace division_steps {

constexpr uint32_t MASK = (1u << 30) - 1;

// How many rounds of 30 steps. None is left before `LEAST`, so that few powers of 4 are needed.
template <class Modulus>
struct Rounds;

template <>
struct Rounds<FpModulus> {
    static constexpr int LEAST = 25, MOST = 30;  // 900 steps; 878 are enough
};

template <>
struct Rounds<FrModulus> {
    static constexpr int LEAST = 16, MOST = 20;  // 600 steps; 588 are enough
};

// The modulus in base 2^32 with all limbs in [-2^31, 2^31): a limb from 2^31 on loses 2^32, and the
// next one gains one.
template <class Modulus>
struct SignedModulus {
    int32_t limb[Modulus::N];

    CUZK_FN constexpr SignedModulus() : limb() {
        uint64_t sum = 0;
        for (int i = 0; i < Modulus::N; i++) {
            sum = (sum >> 31 != 0 ? 1 : 0) + uint64_t(Modulus::p_limb(i));
            limb[i] = int32_t(uint32_t(sum));
        }
    }
};

// 4^n R^3 mod p for n = LEAST ... MOST, R = 2^(32 N).
template <class Modulus>
struct Corrections {
    static constexpr int N = Modulus::N;
    static constexpr int LEAST = Rounds<Modulus>::LEAST, MOST = Rounds<Modulus>::MOST;

    uint32_t limb[MOST - LEAST + 1][N];

    CUZK_FN constexpr Corrections() : limb() {
        uint32_t power[N] = {};
        for (int i = 0; i < N; i++) power[i] = Modulus::r_squared(i);
        for (int k = 0; k < 32 * N + 2 * LEAST; k++) double_modulo(power);
        for (int n = LEAST; n <= MOST; n++) {
            for (int i = 0; i < N; i++) limb[n - LEAST][i] = power[i];
            double_modulo(power);
            double_modulo(power);
        }
    }

  private:
    // number <- 2 number mod p; 2 p has no carry out of the top limb.
    CUZK_FN static constexpr void double_modulo(uint32_t *number) {
        uint32_t less[N] = {};
        uint32_t carry = 0, borrow = 0;
        for (int i = 0; i < N; i++) {
            uint32_t doubled = (number[i] << 1) | carry;
            carry = number[i] >> 31;
            number[i] = doubled;
            uint64_t difference = uint64_t(doubled) - Modulus::p_limb(i) - borrow;
            less[i] = uint32_t(difference);
            borrow = uint32_t(difference >> 63);
        }
        if (borrow == 0) {
            for (int i = 0; i < N; i++) number[i] = less[i];
        }
    }
};

#if defined(__CUDACC__)
static __constant__ Corrections<FpModulus> fp_corrections;
static __constant__ Corrections<FrModulus> fr_corrections;
#endif

// 4^rounds R^3 mod p.
template <class Modulus>
CUZK_FN Mont<Modulus> correction(int rounds) {
    int row = rounds - Rounds<Modulus>::LEAST;
    Mont<Modulus> value;
#if defined(__CUDA_ARCH__)
#pragma unroll
    for (int i = 0; i < Modulus::N; i++) {
        if constexpr (Modulus::N == FpModulus::N) {
            value.limb[i] = fp_corrections.limb[row][i];
        } else {
            value.limb[i] = fr_corrections.limb[row][i];
        }
    }
#else
    static constexpr Corrections<Modulus> corrections;
    for (int i = 0; i < Modulus::N; i++) value.limb[i] = corrections.limb[row][i];
#endif
    return value;
}

template <int LIMBS>
struct Long {
    int32_t limb[LIMBS];
};

// Rows (u, v) and (q, r): |u| + |v| and |q| + |r| are at most 2^30.
struct Matrix {
    int32_t u, v, q, r;
};

// The state of the steps on single words. A row of the matrix is one word, low + 2^16 high modulo
// 2^32: rows are linear in all that is done to them, so one operation serves both entries.
struct Words {
    uint32_t f, g;
    uint32_t first, second;  // (1, 0) and (0, 1) to begin with
    int32_t twice_delta;
};

// One step. On the device ten instructions, of which three must and three more can go to the
// multiply pipe; predicates keep it free of branches.
CUZK_FN void step(Words &w) {
#if defined(__CUDA_ARCH__)
    asm("{\n\t"
        ".reg .pred odd, replace;\n\t"
        ".reg .b32 bit, sign;\n\t"
        "and.b32 bit, %1, 1;\n\t"
        "setp.ne.u32 odd, bit, 0;\n\t"
        "setp.gt.and.s32 replace, %4, 0, odd;\n\t"
        "selp.b32 sign, -1, 1, replace;\n\t"
        "@odd mad.lo.u32 %1, sign, %0, %1;\n\t"
        "@odd mad.lo.u32 %3, sign, %2, %3;\n\t"
        "@replace add.u32 %0, %0, %1;\n\t"  // g - f + f: the g of before
        "@replace add.u32 %2, %2, %3;\n\t"
        "mad.lo.s32 %4, sign, %4, 2;\n\t"
        "shr.u32 %1, %1, 1;\n\t"
        "add.u32 %2, %2, %2;\n\t"
        "}"
        : "+r"(w.f), "+r"(w.g), "+r"(w.first), "+r"(w.second), "+r"(w.twice_delta));
#else
    bool odd = (w.g & 1) != 0;
    bool replace = odd && w.twice_delta > 0;
    uint32_t sign = replace ? 0xffffffffu : 1u;
    if (odd) {
        w.g += sign * w.f;
        w.second += sign * w.first;
    }
    if (replace) {
        w.f += w.g;
        w.first += w.second;
    }
    w.twice_delta = int32_t(sign) * w.twice_delta + 2;
    w.g >>= 1;
    w.first += w.first;
#endif
}

// A row after 15 steps, negated. |low| + |high| <= 2^15, and of all four entries only the first
// can be as large as 2^15, with a positive sign: the determinant is 2^15, and once f was replaced
// the first row is even, so that an entry of 2^15, which has a zero beside it, would need an odd
// one in that row. So all negated entries are in [-2^15, 2^15).
struct NegatedRow {
    int32_t low, high;

    CUZK_FN explicit NegatedRow(uint32_t row) {
        uint32_t negated = 0u - row;
        low = int16_t(uint16_t(negated));
        high = int32_t(negated - uint32_t(low)) >> 16;
    }
};

CUZK_FN void fifteen_steps(Words &w) {
    w.first = 1;
    w.second = 1u << 16;
#pragma unroll
    for (int i = 0; i < 15; i++) step(w);
}

// Thirty steps: two matrices of 15, multiplied. The signs of the negated rows cancel.
CUZK_FN Matrix thirty_steps(int32_t &twice_delta, uint32_t f, uint32_t g) {
    Words w = {f, g, 0, 0, twice_delta};
    fifteen_steps(w);
    NegatedRow uv(w.first), qr(w.second);
    fifteen_steps(w);
    NegatedRow a(w.first), b(w.second);
    twice_delta = w.twice_delta;
    return {a.low * uv.low + a.high * qr.low, a.low * uv.high + a.high * qr.high,
            b.low * uv.low + b.high * qr.low, b.low * uv.high + b.high * qr.high};
}

// sum += x y. In these two halves the assembler keeps it one IMAD.WIDE; a mad.wide it splits into a
// product and a three-term addition, and the compiler by itself multiplies 64 bits by 64.
CUZK_FN void add_product(int64_t &sum, int32_t x, int32_t y) {
#if defined(__CUDA_ARCH__)
    asm("{\n\t"
        ".reg .u32 low, high;\n\t"
        "mov.b64 {low, high}, %0;\n\t"
        "mad.lo.cc.s32 low, %1, %2, low;\n\t"
        "madc.hi.s32 high, %1, %2, high;\n\t"
        "mov.b64 %0, {low, high};\n\t"
        "}"
        : "+l"(sum)
        : "r"(x), "r"(y));
#else
    sum += int64_t(x) * y;
#endif
}

// (f, g) <- T (f, g) / 2^30, exact.
template <int LIMBS>
CUZK_FN void apply(const Matrix &t, Long<LIMBS> &f, Long<LIMBS> &g) {
    int64_t sum_f = 0, sum_g = 0;
#pragma unroll
    for (int i = 0; i < LIMBS; i++) {
        int32_t limb_f = f.limb[i], limb_g = g.limb[i];
        add_product(sum_f, t.u, limb_f);
        add_product(sum_f, t.v, limb_g);
        add_product(sum_g, t.q, limb_f);
        add_product(sum_g, t.r, limb_g);
        if (i > 0) {
            f.limb[i - 1] = int32_t(uint32_t(sum_f) & MASK);
            g.limb[i - 1] = int32_t(uint32_t(sum_g) & MASK);
        }
        sum_f >>= 30;
        sum_g >>= 30;
    }
    f.limb[LIMBS - 1] = int32_t(sum_f);
    g.limb[LIMBS - 1] = int32_t(sum_g);
}

// What is left of a column's sum for the next one, when the limb in [-2^31, 2^31) is taken out.
CUZK_FN int64_t carry_of(int64_t sum) {
    return int32_t(sum >> 32) + int32_t(uint32_t(sum) >> 31);
}

// (d, e) <- T (d, e) / 2^32 mod p. With |multiple| <= 2^31, |d'| and |e'| are at most a quarter of
// the larger of |d| and |e| plus p / 2: from 1 on they stay below 2 p / 3. A column's sum is below
// 2^30 2^31 + 2^31 2^31 + 2^32 < 2^63.
template <class Modulus>
CUZK_FN void apply_modulo(const Matrix &t, Long<Modulus::N> &d, Long<Modulus::N> &e) {
    constexpr int N = Modulus::N;
    constexpr SignedModulus<Modulus> p;
    int64_t sum_d = 0, sum_e = 0;
    int32_t multiple_d = 0, multiple_e = 0;
#pragma unroll
    for (int i = 0; i < N; i++) {
        int32_t limb_d = d.limb[i], limb_e = e.limb[i];
        add_product(sum_d, t.u, limb_d);
        add_product(sum_d, t.v, limb_e);
        add_product(sum_e, t.q, limb_d);
        add_product(sum_e, t.r, limb_e);
        if (i == 0) {
            multiple_d = int32_t(uint32_t(sum_d) * Modulus::negative_inverse());
            multiple_e = int32_t(uint32_t(sum_e) * Modulus::negative_inverse());
        }
        add_product(sum_d, p.limb[i], multiple_d);
        add_product(sum_e, p.limb[i], multiple_e);
        if (i > 0) {
            d.limb[i - 1] = int32_t(uint32_t(sum_d));
            e.limb[i - 1] = int32_t(uint32_t(sum_e));
        }
        sum_d = carry_of(sum_d);
        sum_e = carry_of(sum_e);
    }
    d.limb[N - 1] = int32_t(sum_d);
    e.limb[N - 1] = int32_t(sum_e);
}

// d + p, in (0, 2 p) for d in (-p, p), as words of base 2^32.
template <class Modulus>
CUZK_FN Mont<Modulus> plus_modulus(const Long<Modulus::N> &d) {
    constexpr int N = Modulus::N;
    Mont<Modulus> sum;
    // A negative limb stands for itself plus 2^32, less one in the next place.
    Carry borrow;
    sum.limb[0] = uint32_t(d.limb[0]);
    sum.limb[1] = sub_cc(uint32_t(d.limb[1]), uint32_t(d.limb[0]) >> 31, borrow);
#pragma unroll
    for (int i = 2; i < N; i++) {
        sum.limb[i] = subc_cc(uint32_t(d.limb[i]), uint32_t(d.limb[i - 1]) >> 31, borrow);
    }
    Carry carry;
    sum.limb[0] = add_cc(sum.limb[0], Modulus::p(0), carry);
#pragma unroll
    for (int i = 1; i < N - 1; i++) sum.limb[i] = addc_cc(sum.limb[i], Modulus::p(i), carry);
    sum.limb[N - 1] = addc(sum.limb[N - 1], Modulus::p(N - 1), carry);
    return sum;
}

// Limb i in base 2^30 of a number of N words.
template <int N>
CUZK_FN int32_t limb_of(const uint32_t *number, int i) {
    int word = 30 * i / 32, shift = 30 * i % 32;
    uint32_t low = number[word] >> shift;
    if (shift > 2 && word + 1 < N) low |= number[word + 1] << (32 - shift);
    return int32_t(low & MASK);
}

template <int LIMBS>
CUZK_FN bool is_zero(const Long<LIMBS> &number) {
    int32_t any = number.limb[0];
#pragma unroll
    for (int i = 1; i < LIMBS; i++) any |= number.limb[i];
    return any == 0;
}

}  // namespace division_steps

// 1/x in Montgomery form, for x in Montgomery form; 0 for 0. Its time depends on x a little.
template <class Modulus>
CUZK_FN Mont<Modulus> inverse(const Mont<Modulus> &x) {
    using namespace division_steps;
    using R = Rounds<Modulus>;
    constexpr int N = Modulus::N;
    constexpr int LIMBS = (32 * N + 28) / 30;  // two bits more than the modulus has

    Mont<Modulus> modulus;
#pragma unroll
    for (int i = 0; i < N; i++) modulus.limb[i] = Modulus::p_limb(i);

    Long<LIMBS> f, g;
    Long<N> d, e;
#pragma unroll
    for (int i = 0; i < LIMBS; i++) {
        f.limb[i] = limb_of<N>(modulus.limb, i);
        g.limb[i] = limb_of<N>(x.limb, i);
    }
#pragma unroll
    for (int i = 0; i < N; i++) {
        d.limb[i] = 0;
        e.limb[i] = i == 0;
    }

    int32_t twice_delta = 1;
    int rounds = 0;
#pragma unroll 1
    do {
        Matrix t = thirty_steps(twice_delta, uint32_t(f.limb[0]), uint32_t(g.limb[0]));
        apply(t, f, g);
        apply_modulo<Modulus>(t, d, e);
        rounds++;
    } while (rounds < R::LEAST || (rounds < R::MOST && !is_zero(g)));

    // The unreduced factor stands second: rows of the product then stay below 2 p.
    Mont<Modulus> result = correction<Modulus>(rounds) * plus_modulus<Modulus>(d);
    return f.limb[LIMBS - 1] < 0 ? -result : result;
}

}  // namespace cuzk
