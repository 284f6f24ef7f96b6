//! Builds a compiled circuit from a stream of allocations, rows and nested blocks.
//!
//! The largest blocks of at most [`ROW_LIMIT`] rows become runs of their own; a block above
//! the limit is split into its children, and the loose rows between them form runs
//! too, together with blocks below [`MIN_ROWS`]. Memory holds the distinct templates and at most two runs of undecided rows, so
//! 10^8 rows can be streamed.

use crate::circuit::CompiledCircuit;
use crate::compiler::{Compiler, Pending, Position, is_allocated};
use crate::dictionary::Interner;
use crate::{Error, Fr, MAX_COUNT, Shape, Variable};
use ff::Field;

/// Most rows of a run. One SHA-256 two-to-one hash of Filecoin has 45 382, one window
/// sector 53 333, and both should be one template.
pub const ROW_LIMIT: usize = 60_000;

/// Fewest rows of a block that becomes a run; a call for a row or two would cost more than it saves.
pub const MIN_ROWS: usize = 64;

/// An open block.
struct Block {
    start: Position,
    /// Closed children of enough rows, in order; only kept while this block is whole.
    children: Vec<(Position, Position)>,
}

/// Records a circuit. Errors are kept and returned by [`Builder::finish`].
pub struct Builder {
    row_limit: usize,
    min_rows: usize,
    interner: Interner,
    compiler: Compiler,
    pending: Pending,
    /// Rows before the first one in `pending`.
    discarded: u32,
    now: Position,
    /// Everything before this position is compiled.
    compiled: Position,
    /// The root and the open blocks; the first `split` of them are above the row limit.
    stack: Vec<Block>,
    split: usize,
    error: Option<Error>,
    sorted: Vec<(u32, Fr)>,
}

impl Default for Builder {
    fn default() -> Self {
        Self::new()
    }
}

impl Builder {
    /// An empty circuit: input 0, the constant one, exists.
    #[must_use]
    pub fn new() -> Self {
        Self::with_row_limits(MIN_ROWS, ROW_LIMIT)
    }

    /// Like [`Builder::new`] with other limits for the rows of a block that becomes a run.
    #[must_use]
    pub fn with_row_limits(min_rows: usize, row_limit: usize) -> Self {
        let start = Position {
            row: 0,
            input: 1,
            aux: 0,
        };
        Self {
            row_limit: row_limit.max(1),
            min_rows: min_rows.max(1),
            interner: Interner::default(),
            compiler: Compiler::default(),
            pending: Pending::default(),
            discarded: 0,
            now: start,
            compiled: start,
            stack: vec![Block {
                start,
                children: Vec::new(),
            }],
            split: 0,
            error: None,
            sorted: Vec::new(),
        }
    }

    /// Adds a public input.
    pub fn alloc_input(&mut self) -> Variable {
        let variable = Variable::Input(self.now.input);
        self.now.input = self.counted("number of inputs", self.now.input);
        variable
    }

    /// Adds a private variable.
    pub fn alloc_aux(&mut self) -> Variable {
        let variable = Variable::Aux(self.now.aux);
        self.now.aux = self.counted("number of aux variables", self.now.aux);
        variable
    }

    /// Adds the row a·b = c. Terms may come in any order; a variable that occurs twice in
    /// one combination has its coefficients added, and zero coefficients are dropped.
    pub fn enforce(&mut self, a: &[(Variable, Fr)], b: &[(Variable, Fr)], c: &[(Variable, Fr)]) {
        if self.error.is_some() {
            return;
        }
        let terms = self.pending.terms.len();
        let ends = [a, b, c].map(|combination| {
            if let Err(error) = self.push_combination(combination) {
                self.error.get_or_insert(error);
            }
            self.pending.terms.len()
        });
        if self.error.is_some() {
            self.pending.terms.truncate(terms);
            return;
        }
        self.pending.ends.push(ends);
        self.now.row = self.counted("number of rows", self.now.row);
        self.keep_within_limit();
    }

    /// Opens a block: rows until the matching [`Builder::end_block`] that are likely to
    /// occur again elsewhere with shifted variables.
    pub fn begin_block(&mut self) {
        self.stack.push(Block {
            start: self.now,
            children: Vec::new(),
        });
    }

    /// Closes the innermost open block.
    pub fn end_block(&mut self) {
        if self.stack.len() == 1 {
            self.error
                .get_or_insert(Error::UnbalancedBlocks { open: 0 });
            return;
        }
        let block = self.stack.pop().expect("the root stays on the stack");
        if self.split > self.stack.len() {
            self.split = self.stack.len();
            // Loose rows after the last child.
            self.compile_until(self.now);
            return;
        }
        if ((self.now.row - block.start.row) as usize) < self.min_rows {
            return; // Its rows and variables belong to the rows around it.
        }
        if self.split == self.stack.len() {
            self.compile_until(block.start);
            self.compile_until(self.now);
        } else if let Some(parent) = self.stack.last_mut() {
            parent.children.push((block.start, self.now));
        }
    }

    /// Ends the circuit.
    ///
    /// # Errors
    /// The first error met by any call, or a block left open.
    pub fn finish(mut self) -> Result<CompiledCircuit, Error> {
        if self.error.is_none() && self.stack.len() > 1 {
            let open = self.stack.len() - 1;
            self.error = Some(Error::UnbalancedBlocks { open });
        }
        self.compile_until(self.now);
        if let Some(error) = self.error {
            return Err(error);
        }
        let shape = Shape {
            constraints: self.now.row as usize,
            inputs: self.now.input as usize,
            aux: self.now.aux as usize,
        };
        Ok(CompiledCircuit::from_parts(
            shape,
            self.interner.finish(),
            self.compiler.templates,
            self.compiler.calls,
            self.compiler.arguments,
        ))
    }

    /// `count + 1`, or an error kept and the count unchanged.
    fn counted(&mut self, what: &'static str, count: u32) -> u32 {
        if u64::from(count) >= MAX_COUNT {
            self.error.get_or_insert(Error::TooLarge {
                what,
                value: u64::from(count) + 1,
                limit: MAX_COUNT,
            });
            return count;
        }
        count + 1
    }

    fn push_combination(&mut self, combination: &[(Variable, Fr)]) -> Result<(), Error> {
        let mut sorted = std::mem::take(&mut self.sorted);
        sorted.clear();
        sorted.extend(combination.iter().map(|(v, c)| (v.pack(), *c)));
        if !sorted.is_sorted_by(|x, y| x.0 < y.0) {
            sorted.sort_by_key(|t| t.0);
            sorted.dedup_by(|next, kept| {
                let same = next.0 == kept.0;
                if same {
                    kept.1 += next.1;
                }
                same
            });
        }
        let result = sorted.iter().try_for_each(|(packed, coefficient)| {
            if !is_allocated(*packed, self.now) {
                return Err(Error::UnknownVariable {
                    row: u64::from(self.now.row),
                    variable: Variable::unpack(*packed),
                });
            }
            if !bool::from(coefficient.is_zero()) {
                self.pending
                    .terms
                    .push((*packed, self.interner.id(coefficient)?));
            }
            Ok(())
        });
        self.sorted = sorted;
        result
    }

    /// After a row: splits the blocks that it brought above the limit.
    fn keep_within_limit(&mut self) {
        while let Some(block) = self.stack.get_mut(self.split) {
            if (self.now.row - block.start.row) as usize <= self.row_limit {
                return;
            }
            let start = block.start;
            let children = std::mem::take(&mut block.children);
            self.split += 1;
            self.compile_until(start);
            for (start, end) in children {
                self.compile_until(start);
                self.compile_until(end);
            }
        }
        // Only split blocks are open: loose rows.
        if (self.now.row - self.compiled.row) as usize >= self.row_limit {
            self.compile_until(self.now);
        }
    }

    /// Compiles what lies between `compiled` and `end`, if anything does, as one run.
    fn compile_until(&mut self, end: Position) {
        if self.error.is_some() || self.compiled == end {
            return;
        }
        let first_row = (self.compiled.row - self.discarded) as usize;
        let small = self.interner.small_values();
        if let Err(error) = self
            .compiler
            .call(&self.pending, first_row, self.compiled, end, small)
        {
            self.error = Some(error);
            return;
        }
        self.compiled = end;
        // Dropping rows moves those after them: wait until most can go.
        let done = (end.row - self.discarded) as usize;
        if done > self.pending.rows() / 2 {
            self.pending.discard(done);
            self.discarded = end.row;
        }
    }
}

#[cfg(test)]
#[path = "builder_tests.rs"]
mod tests;
