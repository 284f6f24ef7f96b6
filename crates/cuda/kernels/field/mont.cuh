// Prime-field arithmetic in Montgomery form, for a modulus of N 32-bit limbs.
//
// Every value that leaves a function here is fully reduced, below p, and has the bytes that blst
// gives it: limbs little-endian, R = 2^(32 N). `Modulus` gives N, the limbs of p, of R mod p and
// of R^2 mod p, and -1/p mod 2^32. Needs N even and 2 p < R, which both fields of BLS12-381
// satisfy: sums of two values then have no carry out of the top limb.
//
// Products keep two accumulators, "even" and "odd". A product of two limbs has two limbs, so one
// row a * b_i of the schoolbook method is two chains: limbs a_0, a_2, ... fill the columns 0..N
// without gap or overlap, and limbs a_1, a_3, ... the columns 1..N+1. Each chain is one carry
// chain of multiply-adds, with no additions besides. odd[k] holds column k + 1. Reducing by one
// limb empties column 0; moving all columns down by one turns odd into even, and even, moved
// down by two, into odd; what was in even's column 1 is then added to the new column 0.

#pragma once

#include "carry.cuh"

namespace cuzk {

// A product before reduction: 2 N limbs.
template <int N>
struct Wide {
    uint32_t limb[2 * N];
};

template <class Modulus>
struct alignas(16) Mont {
    static constexpr int N = Modulus::N;
    static_assert(N % 2 == 0, "the two accumulators need an even number of limbs");

    uint32_t limb[N];

    CUZK_FN static Mont zero() {
        Mont value;
#pragma unroll
        for (int i = 0; i < N; i++) value.limb[i] = 0;
        return value;
    }

    // R mod p, the Montgomery form of 1.
    CUZK_FN static Mont one() {
        Mont value;
#pragma unroll
        for (int i = 0; i < N; i++) value.limb[i] = Modulus::r(i);
        return value;
    }

    // R^2 mod p: times this, a canonical value becomes Montgomery.
    CUZK_FN static Mont r_squared() {
        Mont value;
#pragma unroll
        for (int i = 0; i < N; i++) value.limb[i] = Modulus::r_squared(i);
        return value;
    }

    // The Montgomery form of a small number.
    CUZK_FN static Mont from_u32(uint32_t number) {
        Mont value = zero();
        value.limb[0] = number;
        return value.to_montgomery();
    }

    // From canonical limbs, below p.
    CUZK_FN Mont to_montgomery() const { return *this * r_squared(); }

    // The value itself: canonical limbs, below p.
    CUZK_FN Mont to_canonical() const {
        Wide<N> wide;
#pragma unroll
        for (int i = 0; i < N; i++) {
            wide.limb[i] = limb[i];
            wide.limb[N + i] = 0;
        }
        return reduce(wide);
    }

    CUZK_FN bool is_zero() const {
        uint32_t any = limb[0];
#pragma unroll
        for (int i = 1; i < N; i++) any |= limb[i];
        return any == 0;
    }

    CUZK_FN friend bool operator==(const Mont &x, const Mont &y) {
        uint32_t any = x.limb[0] ^ y.limb[0];
#pragma unroll
        for (int i = 1; i < N; i++) any |= x.limb[i] ^ y.limb[i];
        return any == 0;
    }

    CUZK_FN friend bool operator!=(const Mont &x, const Mont &y) { return !(x == y); }

    CUZK_FN friend Mont operator+(const Mont &x, const Mont &y) {
        Mont sum;
        Carry carry;
        sum.limb[0] = add_cc(x.limb[0], y.limb[0], carry);
#pragma unroll
        for (int i = 1; i < N - 1; i++) sum.limb[i] = addc_cc(x.limb[i], y.limb[i], carry);
        sum.limb[N - 1] = addc(x.limb[N - 1], y.limb[N - 1], carry);
        return sum.below_p();
    }

    CUZK_FN friend Mont operator-(const Mont &x, const Mont &y) {
        Mont difference;
        Carry carry;
        difference.limb[0] = sub_cc(x.limb[0], y.limb[0], carry);
#pragma unroll
        for (int i = 1; i < N; i++) difference.limb[i] = subc_cc(x.limb[i], y.limb[i], carry);
        uint32_t borrow = subc(0, 0, carry);  // all ones if x < y

        Carry back;
        difference.limb[0] = add_cc(difference.limb[0], Modulus::p(0) & borrow, back);
#pragma unroll
        for (int i = 1; i < N - 1; i++) {
            difference.limb[i] = addc_cc(difference.limb[i], Modulus::p(i) & borrow, back);
        }
        difference.limb[N - 1] = addc(difference.limb[N - 1], Modulus::p(N - 1) & borrow, back);
        return difference;
    }

    CUZK_FN Mont operator-() const { return zero() - *this; }

    CUZK_FN Mont doubled() const { return *this + *this; }

    CUZK_FN Mont &operator+=(const Mont &other) { return *this = *this + other; }
    CUZK_FN Mont &operator-=(const Mont &other) { return *this = *this - other; }
    CUZK_FN Mont &operator*=(const Mont &other) { return *this = *this * other; }

    // x y / R mod p. x and y need not be reduced: x y < p R and x + p < R are enough for a reduced
    // result. (The rows of the product are below x + p. In Fr an x from R - p = 1.2 p on is too large.)
    CUZK_FN friend Mont operator*(const Mont &x, const Mont &y) {
        return product_below_2p(x, y).below_p();
    }

    // x - y or x - y + 2 p, below 2 p; for x and y below 2 p.
    CUZK_FN static Mont difference_below_2p(const Mont &x, const Mont &y) {
        Mont difference;
        Carry carry;
        difference.limb[0] = sub_cc(x.limb[0], y.limb[0], carry);
#pragma unroll
        for (int i = 1; i < N; i++) difference.limb[i] = subc_cc(x.limb[i], y.limb[i], carry);
        uint32_t borrow = subc(0, 0, carry);  // all ones if x < y

        Carry back;
        difference.limb[0] = add_cc(difference.limb[0], Modulus::doubled_p(0) & borrow, back);
#pragma unroll
        for (int i = 1; i < N - 1; i++) {
            difference.limb[i] = addc_cc(difference.limb[i], Modulus::doubled_p(i) & borrow, back);
        }
        difference.limb[N - 1] = addc(difference.limb[N - 1], Modulus::doubled_p(N - 1) & borrow, back);
        return difference;
    }

    // x - y + 2 p, above 0 and below 4 p; for x and y below 2 p.
    CUZK_FN static Mont difference_below_4p(const Mont &x, const Mont &y) {
        Mont difference;
        Carry borrow;
        difference.limb[0] = sub_cc(x.limb[0], y.limb[0], borrow);
#pragma unroll
        for (int i = 1; i < N - 1; i++) difference.limb[i] = subc_cc(x.limb[i], y.limb[i], borrow);
        difference.limb[N - 1] = subc(x.limb[N - 1], y.limb[N - 1], borrow);
        Carry carry;
        difference.limb[0] = add_cc(difference.limb[0], Modulus::doubled_p(0), carry);
#pragma unroll
        for (int i = 1; i < N - 1; i++) {
            difference.limb[i] = addc_cc(difference.limb[i], Modulus::doubled_p(i), carry);
        }
        difference.limb[N - 1] = addc(difference.limb[N - 1], Modulus::doubled_p(N - 1), carry);
        return difference;
    }

    // x y / R mod p, or that and p, for x y < p R and x + p < R. A limb of y at a time, reduced by a limb after
    // each: 2 N^2 + N multiplications of limbs. The result is below x y / R + p.
    CUZK_FN static Mont product_below_2p(const Mont &x, const Mont &y) {
        uint32_t even[N], odd[N];
#pragma unroll
        for (int j = 0; j < N; j += 2) {
            mul_wide(even[j], even[j + 1], x.limb[j], y.limb[0]);
            mul_wide(odd[j], odd[j + 1], x.limb[j + 1], y.limb[0]);
        }
        cancel_lowest(even, odd);
#pragma unroll
        for (int i = 1; i < N; i += 2) {
            multiply_row(odd, even, x.limb, y.limb[i]);
            cancel_lowest(odd, even);
            if (i + 1 < N) {
                multiply_row(even, odd, x.limb, y.limb[i + 1]);
                cancel_lowest(even, odd);
            }
        }
        // N is even, so the accumulators have changed roles N - 1 times.
        return merge(odd, even);
    }

    // x^2 / R mod p: the products of different limbs are computed once and doubled.
    CUZK_FN Mont squared() const { return reduce(square_wide(*this)); }

    // x^2 / R mod p, or that and p, for x^2 < p R: below x^2 / R + p.
    CUZK_FN Mont square_below_2p() const { return reduce_below_2p(square_wide(*this)); }

    // x y, not reduced.
    CUZK_FN static Wide<N> multiply_wide(const Mont &x, const Mont &y) {
        // Accumulators by the parity of the column at which a product starts; odd[k] is column k + 1.
        uint32_t even[2 * N], odd[2 * N];
#pragma unroll
        for (int k = 0; k < 2 * N; k++) even[k] = odd[k] = 0;
#pragma unroll
        for (int i = 0; i < N; i += 2) {
            add_chain<N / 2>(even + i, x.limb, y.limb[i]);
            add_chain<N / 2>(odd + i, x.limb + 1, y.limb[i]);
            add_chain<N / 2>(odd + i, x.limb, y.limb[i + 1]);
            add_chain<N / 2>(even + i + 2, x.limb + 1, y.limb[i + 1]);
        }
        return join_columns(even, odd);
    }

    // x^2, not reduced.
    CUZK_FN static Wide<N> square_wide(const Mont &x) {
        uint32_t even[2 * N], odd[2 * N];
#pragma unroll
        for (int k = 0; k < 2 * N; k++) even[k] = odd[k] = 0;
        square_rows<0>(even, odd, x.limb);
        Wide<N> cross = join_columns(even, odd);

        Carry carry;
        cross.limb[0] = 0;  // the lowest product of different limbs starts at column 1
        cross.limb[1] = add_cc(cross.limb[1], cross.limb[1], carry);
#pragma unroll
        for (int k = 2; k < 2 * N - 1; k++) {
            cross.limb[k] = addc_cc(cross.limb[k], cross.limb[k], carry);
        }
        cross.limb[2 * N - 1] = addc(cross.limb[2 * N - 1], cross.limb[2 * N - 1], carry);

        Carry squares;
        mad_cc(cross.limb[0], cross.limb[1], x.limb[0], x.limb[0], squares);
#pragma unroll
        for (int i = 1; i < N; i++) {
            madc_cc(cross.limb[2 * i], cross.limb[2 * i + 1], x.limb[i], x.limb[i], squares);
        }
        return cross;
    }

    // wide / R mod p, for wide < p R.
    CUZK_FN static Mont reduce(const Wide<N> &wide) { return reduce_below_2p(wide).below_p(); }

    // wide / R mod p, or that and p, for wide < p R: below wide / R + p.
    CUZK_FN static Mont reduce_below_2p(const Wide<N> &wide) {
        uint32_t even[N], odd[N];
#pragma unroll
        for (int k = 0; k < N; k++) even[k] = wide.limb[k];
        uint32_t multiple = even[0] * Modulus::negative_inverse();
#pragma unroll
        for (int k = 0; k < N; k += 2) mul_wide(odd[k], odd[k + 1], Modulus::p(k + 1), multiple);
        add_even_multiple(even, odd, multiple);
#pragma unroll
        for (int i = 1; i < N; i += 2) {
            cancel_row(odd, even);
            if (i + 1 < N) cancel_row(even, odd);
        }
        // The low half has become a number of at most p, the high half is below p.
        Mont sum = merge(odd, even);
        Carry carry;
        sum.limb[0] = add_cc(sum.limb[0], wide.limb[N], carry);
#pragma unroll
        for (int k = 1; k < N - 1; k++) sum.limb[k] = addc_cc(sum.limb[k], wide.limb[N + k], carry);
        sum.limb[N - 1] = addc(sum.limb[N - 1], wide.limb[2 * N - 1], carry);
        return sum;
    }

    // This value less p if it is not below p. For values below 2 p.
    CUZK_FN Mont below_p() const {
        Mont less;
        Carry carry;
        less.limb[0] = sub_cc(limb[0], Modulus::p(0), carry);
#pragma unroll
        for (int i = 1; i < N; i++) less.limb[i] = subc_cc(limb[i], Modulus::p(i), carry);
        bool was_below = subc(0, 0, carry) != 0;
#pragma unroll
        for (int i = 0; i < N; i++) less.limb[i] = was_below ? limb[i] : less.limb[i];
        return less;
    }

  private:
    // acc += (x[0] + x[2] 2^64 + x[4] 2^128 ...) factor, over COUNT limbs of x; the carry out
    // goes into the limb above, which has room for it.
    template <int COUNT>
    CUZK_FN static void add_chain(uint32_t *acc, const uint32_t *x, uint32_t factor) {
        Carry carry;
        mad_cc(acc[0], acc[1], x[0], factor, carry);
#pragma unroll
        for (int k = 1; k < COUNT; k++) madc_cc(acc[2 * k], acc[2 * k + 1], x[2 * k], factor, carry);
        acc[2 * COUNT] = addc(acc[2 * COUNT], 0, carry);
    }

    // Adds x_i x_j for all j > i, from row i = ROW on.
    template <int ROW>
    CUZK_FN static void square_rows(uint32_t *even, uint32_t *odd, const uint32_t *x) {
        if constexpr (ROW < N - 1) {
            // j = ROW + 1, ROW + 3, ...: columns 2 ROW + 1, ...; j = ROW + 2, ...: 2 ROW + 2, ...
            constexpr int ODD_PRODUCTS = (N - ROW) / 2;
            constexpr int EVEN_PRODUCTS = (N - ROW - 1) / 2;
            add_chain<ODD_PRODUCTS>(odd + 2 * ROW, x + ROW + 1, x[ROW]);
            if constexpr (EVEN_PRODUCTS > 0) {
                add_chain<EVEN_PRODUCTS>(even + 2 * ROW + 2, x + ROW + 2, x[ROW]);
            }
            square_rows<ROW + 1>(even, odd, x);
        }
    }

    // even + odd 2^32, in 2 N limbs.
    CUZK_FN static Wide<N> join_columns(const uint32_t *even, const uint32_t *odd) {
        Wide<N> wide;
        Carry carry;
        wide.limb[0] = even[0];
        wide.limb[1] = add_cc(even[1], odd[0], carry);
#pragma unroll
        for (int k = 2; k < 2 * N - 1; k++) wide.limb[k] = addc_cc(even[k], odd[k - 1], carry);
        wide.limb[2 * N - 1] = addc(even[2 * N - 1], odd[2 * N - 2], carry);
        return wide;
    }

    // Moves the columns down by one, after column 0 has become zero, and adds x factor.
    // `even` comes in as the odd accumulator of before and `odd` as the even one.
    CUZK_FN static void multiply_row(uint32_t *even, uint32_t *odd, const uint32_t *x,
                                     uint32_t factor) {
        Carry carry;
        even[0] = add_cc(even[0], odd[1], carry);
#pragma unroll
        for (int k = 0; k < N - 2; k += 2) {
            odd[k] = odd[k + 2];
            odd[k + 1] = odd[k + 3];
            madc_cc(odd[k], odd[k + 1], x[k + 1], factor, carry);
        }
        mulc(odd[N - 2], odd[N - 1], x[N - 1], factor, carry);

        Carry row;
        mad_cc(even[0], even[1], x[0], factor, row);
#pragma unroll
        for (int k = 2; k < N; k += 2) madc_cc(even[k], even[k + 1], x[k], factor, row);
        odd[N - 1] = addc(odd[N - 1], 0, row);
    }

    // Adds the multiple of p that makes column 0 zero.
    CUZK_FN static void cancel_lowest(uint32_t *even, uint32_t *odd) {
        uint32_t multiple = even[0] * Modulus::negative_inverse();
        Carry carry;
        mad_cc(odd[0], odd[1], Modulus::p(1), multiple, carry);
#pragma unroll
        for (int k = 2; k < N; k += 2) {
            madc_cc(odd[k], odd[k + 1], Modulus::p(k + 1), multiple, carry);
        }
        add_even_multiple(even, odd, multiple);
    }

    // Moves the columns down by one and cancels the lowest again: `multiply_row` and
    // `cancel_lowest` without a product.
    CUZK_FN static void cancel_row(uint32_t *even, uint32_t *odd) {
        Carry carry;
        even[0] = add_cc(even[0], odd[1], carry);
        uint32_t multiple = even[0] * Modulus::negative_inverse();  // leaves the carry alone
#pragma unroll
        for (int k = 0; k < N - 2; k += 2) {
            odd[k] = odd[k + 2];
            odd[k + 1] = odd[k + 3];
            madc_cc(odd[k], odd[k + 1], Modulus::p(k + 1), multiple, carry);
        }
        mulc(odd[N - 2], odd[N - 1], Modulus::p(N - 1), multiple, carry);
        add_even_multiple(even, odd, multiple);
    }

    CUZK_FN static void add_even_multiple(uint32_t *even, uint32_t *odd, uint32_t multiple) {
        Carry carry;
        mad_cc(even[0], even[1], Modulus::p(0), multiple, carry);
#pragma unroll
        for (int k = 2; k < N; k += 2) madc_cc(even[k], even[k + 1], Modulus::p(k), multiple, carry);
        odd[N - 1] = addc(odd[N - 1], 0, carry);
    }

    // The accumulators' sum after the last row, moved down by one column.
    CUZK_FN static Mont merge(const uint32_t *even, const uint32_t *odd) {
        Mont sum;
        Carry carry;
        sum.limb[0] = add_cc(odd[0], even[1], carry);
#pragma unroll
        for (int k = 1; k < N - 1; k++) sum.limb[k] = addc_cc(odd[k], even[k + 1], carry);
        sum.limb[N - 1] = addc(odd[N - 1], 0, carry);
        return sum;
    }
};

}  // namespace cuzk
