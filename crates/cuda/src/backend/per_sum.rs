//! Five of something: one for each sum of a proof.

/// One for each of the five sums: of the four in G1 and of the one in G2.
#[derive(Clone)]
pub struct Five<T, U> {
    pub h: T,
    pub l: T,
    pub a: T,
    pub b_g1: T,
    pub b_g2: U,
}

/// The same for both groups.
pub type PerSum<T> = Five<T, T>;

impl<T> PerSum<T> {
    pub fn as_array(&self) -> [&T; 5] {
        [&self.h, &self.l, &self.a, &self.b_g1, &self.b_g2]
    }

    pub fn at(&mut self, sum: usize) -> &mut T {
        match sum {
            0 => &mut self.h,
            1 => &mut self.l,
            2 => &mut self.a,
            3 => &mut self.b_g1,
            _ => &mut self.b_g2,
        }
    }

    pub fn by_ref(&self) -> PerSum<&T> {
        PerSum {
            h: &self.h,
            l: &self.l,
            a: &self.a,
            b_g1: &self.b_g1,
            b_g2: &self.b_g2,
        }
    }

    pub fn map<U>(self, f: impl Fn(T) -> U) -> PerSum<U> {
        PerSum {
            h: f(self.h),
            l: f(self.l),
            a: f(self.a),
            b_g1: f(self.b_g1),
            b_g2: f(self.b_g2),
        }
    }
}
