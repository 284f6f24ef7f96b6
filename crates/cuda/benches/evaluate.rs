//! Evaluates circuits on the first GPU with random witnesses, compares every value with the CPU's
//! and prints times by events:
//!
//! ```sh
//! cargo bench -p cuda --features cuda --bench evaluate -- porep-2k porep-32g
//! ```

use std::error::Error;
use std::time::Instant;

use blstrs::Scalar;
use cuda::evaluate::{EvaluatorPlan, Program, Query, QueryPlan, Step, WitnessBuffers, WitnessPlan};
use cuda::{Device, DeviceSlice, Ledger, Phase, Stream};
use ff::{Field, PrimeField};
use filecoin::CircuitId;
use r1cs::{CompiledCircuit, Matrix, PackedWitness};
use rand_chacha::ChaCha8Rng;
use rand_core::{RngCore, SeedableRng};
use rayon::prelude::*;

type Outcome<T = ()> = Result<T, Box<dyn Error>>;

/// Timed runs after the first.
const RUNS: usize = 7;

fn main() -> Outcome {
    let device = Device::open(0)?;
    println!("{}", device.info().name);
    let mut failed = false;
    // Cargo adds `--bench`.
    for name in std::env::args()
        .skip(1)
        .filter(|name| !name.starts_with('-'))
    {
        if let Err(error) = evaluate(&device, &name) {
            println!("{name}: {error}");
            failed = true;
        }
    }
    if failed {
        Err("not all circuits are right".into())
    } else {
        Ok(())
    }
}

fn evaluate(device: &Device, name: &str) -> Outcome {
    let circuit = CircuitId::parse(name)?.compiled()?;
    let start = Instant::now();
    let program = Program::new(&circuit)?;
    let made_ms = start.elapsed().as_secs_f64() * 1e3;
    println!("== {name}: program made in {made_ms:.1} ms");
    let witness = random_witness(&circuit)?;
    let n = circuit.shape().domain();

    let mut ledger = Ledger::new(name.to_owned());
    let witness_plan = WitnessPlan::new(&circuit, &mut ledger);
    let evaluator_plan = EvaluatorPlan::new(program, &mut ledger);
    let queries =
        [Query::L, Query::A, Query::B].map(|query| QueryPlan::new(query, &circuit, &mut ledger));
    for entry in ledger.entries() {
        println!("  {:>13} {} ({})", entry.bytes, entry.name, entry.lifetime);
    }
    let longest = queries.iter().map(QueryPlan::terms).max().unwrap_or(0);
    let vectors = Phase::Evaluate.to(Phase::Transform);
    let vectors = ["a", "b"].map(|name| ledger.reserve::<Scalar>(name, n, vectors));
    let scalars = ledger.reserve("scalars", 8 * longest, Phase::SumL.to(Phase::SumBG2));
    let points = ledger.reserve("points", longest, Phase::SumL.to(Phase::SumBG2));

    let arena = device.arena(&ledger)?;
    let [a, b] = vectors.map(|slot| arena.get(slot));
    let run = Run {
        circuit: &circuit,
        witness: &witness,
        stream: device.stream()?,
        buffers: witness_plan.bind(device, &arena)?,
    };
    run.spoil(a)?;
    run.spoil(b)?;
    run.buffers.upload(&run.stream, &witness)?;
    let (stream, buffers) = (&run.stream, &run.buffers);
    let start = Instant::now();
    let evaluator = evaluator_plan.bind(device, &arena)?;
    let bound_ms = start.elapsed().as_secs_f64() * 1e3;
    println!("  bound in {bound_ms:.1} ms");
    run.time("unpack", || buffers.unpack(stream))?;
    run.time("evaluate", || evaluator.run(stream, buffers, a, b))?;
    for step in Step::ALL {
        run.time(&format!("{step:?}"), || {
            evaluator.run_step(step, stream, buffers, a, b)
        })?;
    }
    run.compare(Matrix::A, a)?;
    run.compare(Matrix::B, b)?;
    run.compare_ones()?;
    for plan in &queries {
        let tail = plan.bind(device, &arena)?;
        let scalars = arena.get(scalars).slice(0..8 * plan.terms());
        let points = arena.get(points).slice(0..plan.terms());
        let what = format!(
            "tail {:?}, {} of {}",
            plan.query(),
            plan.terms(),
            plan.points()
        );
        run.time(&what, || tail.scalars(stream, buffers, scalars))?;
        tail.points(stream, buffers, points)?;
        run.compare_tail(plan.query(), tail.input_points(), scalars, points)?;
    }
    println!("  all equal");
    Ok(())
}

/// A witness of random bits and values; it need not satisfy the circuit.
fn random_witness(circuit: &CompiledCircuit) -> Outcome<PackedWitness> {
    let layout = circuit.layout();
    let mut rng = ChaCha8Rng::seed_from_u64(0);
    let mut bits: Vec<u64> = (0..layout.bit_count().div_ceil(64))
        .map(|_| rng.next_u64())
        .collect();
    if let (Some(last), tail @ 1..) = (bits.last_mut(), layout.bit_count() % 64) {
        *last &= (1 << tail) - 1;
    }
    let mut dense = vec![Scalar::ZERO; layout.dense_count()];
    dense
        .par_chunks_mut(1 << 12)
        .enumerate()
        .for_each(|(k, chunk)| {
            let mut rng = ChaCha8Rng::seed_from_u64(k as u64 + 2);
            chunk.fill_with(|| Scalar::random(&mut rng));
        });
    let mut inputs = vec![Scalar::ONE];
    inputs.resize_with(circuit.shape().inputs, || Scalar::random(&mut rng));
    Ok(PackedWitness::from_parts(circuit, inputs, bits, dense)?)
}

/// What the checks of one circuit share.
struct Run<'c> {
    circuit: &'c CompiledCircuit,
    witness: &'c PackedWitness,
    stream: Stream,
    buffers: WitnessBuffers,
}

impl Run<'_> {
    /// Fills a vector with a value that no row has, so that one that nobody writes shows.
    fn spoil(&self, vector: DeviceSlice<Scalar>) -> Outcome {
        let piece = vec![Scalar::from(u64::MAX); vector.len().min(1 << 20)];
        for start in (0..vector.len()).step_by(piece.len()) {
            self.stream
                .upload(vector.slice(start..start + piece.len()), &piece)?;
        }
        Ok(())
    }

    fn time(&self, what: &str, mut work: impl FnMut() -> cuda::Result<()>) -> Outcome {
        work()?;
        let mut times = Vec::new();
        for _ in 0..RUNS {
            let before = self.stream.record()?;
            work()?;
            times.push(self.stream.record()?.elapsed_ms(&before)?);
        }
        times.sort_by(f32::total_cmp);
        let (median, most) = (times[RUNS / 2], times[RUNS - 1]);
        println!("  {what}: {median:.3} ms (at most {most:.3})");
        Ok(())
    }

    fn download<T: cuda::Pod + Default>(&self, from: DeviceSlice<T>) -> Outcome<Vec<T>> {
        let mut values = vec![T::default(); from.len()];
        self.stream.download(from, &mut values)?;
        Ok(values)
    }

    fn compare(&self, matrix: Matrix, found: DeviceSlice<Scalar>) -> Outcome {
        let found = self.download(found)?;
        let (rows, inputs) = (self.circuit.shape().constraints, self.witness.inputs());
        let mut expected = vec![Scalar::ZERO; found.len()];
        let start = Instant::now();
        self.circuit
            .evaluate(matrix, self.witness, &mut expected[..rows])?;
        println!(
            "  {matrix:?} on the CPU: {:.0} ms",
            start.elapsed().as_secs_f64() * 1e3
        );
        if matrix == Matrix::A {
            expected[rows..rows + inputs.len()].copy_from_slice(inputs);
        }
        let wrong = found
            .par_iter()
            .zip(&expected)
            .filter(|(x, y)| x != y)
            .count();
        match found
            .par_iter()
            .zip(&expected)
            .position_first(|(x, y)| x != y)
        {
            None => Ok(()),
            Some(row) => Err(format!(
                "{matrix:?}: {wrong} rows of {rows} differ, first row {row}: {} for {}",
                found[row], expected[row]
            )
            .into()),
        }
    }

    fn compare_ones(&self) -> Outcome {
        let found = self.download(self.buffers.ones())?;
        let mut rank = 0;
        for (word, &is_bit) in self.circuit.layout().bitmap().words().iter().enumerate() {
            let mut expected = 0;
            for place in (0..64).filter(|place| is_bit >> place & 1 == 1) {
                expected |= (self.witness.bits()[rank / 64] >> (rank % 64) & 1) << place;
                rank += 1;
            }
            if found[word] != expected {
                let found = found[word];
                return Err(format!("ones: word {word} is {found:x} for {expected:x}").into());
            }
        }
        Ok(())
    }

    fn compare_tail(
        &self,
        query: Query,
        inputs: usize,
        scalars: DeviceSlice<u32>,
        points: DeviceSlice<u32>,
    ) -> Outcome {
        let (scalars, points) = (self.download(scalars)?, self.download(points)?);
        let density = self.circuit.density();
        let is_bit = self.circuit.layout().bitmap();
        let mut terms: Vec<(Scalar, u32)> = (0..inputs)
            .map(|i| (self.witness.inputs()[i], i as u32))
            .collect();
        let (mut point, mut dense) = (inputs as u32, self.witness.dense().iter());
        for aux in 0..self.circuit.shape().aux {
            let present = match query {
                Query::L | Query::PreparedL => true,
                Query::A => density.a_aux.get(aux),
                Query::B => density.b_aux.get(aux),
            };
            if !is_bit.get(aux) {
                let value = dense.next().ok_or("the dense part is too short")?;
                if present {
                    terms.push((*value, point));
                }
            }
            point += u32::from(present);
        }
        let scalar = |term: &usize| {
            let words = scalars[8 * term..8 * term + 8].iter();
            words
                .flat_map(|word| word.to_le_bytes())
                .eq(terms[*term].0.to_repr())
                && points[*term] == terms[*term].1
        };
        match (0..terms.len())
            .into_par_iter()
            .find_first(|term| !scalar(term))
        {
            None if 8 * terms.len() == scalars.len() => Ok(()),
            None => Err(format!("tail {query:?}: {} terms expected", terms.len()).into()),
            Some(term) => Err(format!(
                "tail {query:?}, term {term}: point {} for {}, scalar {:x?} for {}",
                points[term],
                terms[term].1,
                &scalars[8 * term..8 * term + 8],
                terms[term].0
            )
            .into()),
        }
    }
}
