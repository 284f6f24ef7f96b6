//! Small circuits with satisfying witnesses, for self-tests.

use blstrs::Scalar;
use ff::Field;
use r1cs::{Builder, CompiledCircuit, PackedWitness, Variable};

/// A circuit under construction, with values.
struct Sample {
    builder: Builder,
    inputs: Vec<Scalar>,
    aux: Vec<Scalar>,
    /// The circuit follows from the one, the values from the other; nothing secret.
    shape: SplitMix,
    values: SplitMix,
}

/// SplitMix64 (Steele, Lea, Flood 2014).
struct SplitMix(u64);

impl SplitMix {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

/// A circuit of `steps` steps, each with `bits` bits and a product of earlier variables, with a
/// witness that satisfies it. The same arguments give the same circuit.
pub fn sample(
    steps: usize,
    bits: usize,
    seed: u64,
) -> Result<(CompiledCircuit, PackedWitness), r1cs::Error> {
    sample_with(steps, bits, seed, seed)
}

/// As [`sample`], with other values for the same circuit for each `values`.
pub fn sample_with(
    steps: usize,
    bits: usize,
    seed: u64,
    values: u64,
) -> Result<(CompiledCircuit, PackedWitness), r1cs::Error> {
    let mut sample = Sample {
        builder: Builder::new(),
        inputs: vec![Scalar::ONE],
        aux: Vec::new(),
        shape: SplitMix(seed),
        values: SplitMix(values),
    };
    let mut known = vec![Variable::ONE];
    for step in 0..steps {
        if step % 7 == 3 {
            let value = sample.field_element();
            known.push(sample.input(value));
        }
        for _ in 0..bits {
            known.push(sample.bit());
        }
        let [x, y] = [(); 2].map(|()| known[sample.shape.next() as usize % known.len()]);
        known.push(sample.product(x, y));
    }
    let circuit = sample.builder.finish()?;
    let witness = PackedWitness::from_assignment(&circuit, &sample.inputs, &sample.aux)?;
    Ok((circuit, witness))
}

impl Sample {
    fn field_element(&mut self) -> Scalar {
        (0..4).fold(Scalar::ZERO, |sum, _| {
            sum * Scalar::from(u64::MAX) + Scalar::from(self.values.next())
        })
    }

    fn input(&mut self, value: Scalar) -> Variable {
        self.inputs.push(value);
        self.builder.alloc_input()
    }

    fn aux(&mut self, value: Scalar) -> Variable {
        self.aux.push(value);
        self.builder.alloc_aux()
    }

    /// A new bit x: (1 − x)·x = 0.
    fn bit(&mut self) -> Variable {
        let value = Scalar::from(self.values.next() >> 63);
        let x = self.aux(value);
        let minus_x = (x, -Scalar::ONE);
        self.builder.enforce(
            &[(Variable::ONE, Scalar::ONE), minus_x],
            &[(x, Scalar::ONE)],
            &[],
        );
        x
    }

    /// A new z = (x + 3y)·y.
    fn product(&mut self, x: Variable, y: Variable) -> Variable {
        let three = Scalar::from(3);
        let [vx, vy] = [x, y].map(|variable| match variable {
            Variable::Input(i) => self.inputs[i as usize],
            Variable::Aux(i) => self.aux[i as usize],
        });
        let z = self.aux((vx + three * vy) * vy);
        self.builder.enforce(
            &[(x, Scalar::ONE), (y, three)],
            &[(y, Scalar::ONE)],
            &[(z, Scalar::ONE)],
        );
        z
    }
}
