//! The topics of kernels.

/// Declares the topics with the names of their folders under `kernels/`.
macro_rules! topics {
    ($($(#[$doc:meta])* $topic:ident = $folder:literal,)*) => {
        /// A group of kernels: one folder of `kernels/`, loaded when its first kernel is asked for.
        ///
        /// To add one, make the folder and add a line here; every `.cu` file in it is built.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Topic {
            $($(#[$doc])* $topic,)*
        }

        impl Topic {
            /// All topics.
            pub const ALL: &[Topic] = &[$(Topic::$topic,)*];

            /// The folder of its sources.
            pub fn name(self) -> &'static str {
                match self {
                    $(Topic::$topic => $folder,)*
                }
            }
        }
    };
}

topics! {
    /// Group sums.
    Msm = "msm",
    /// Transforms over Fr.
    Ntt = "ntt",
    /// A·w and B·w from a compiled circuit, and what the queries take from a witness.
    Evaluate = "evaluate",
    /// The programming model: barriers, collectives, atomics.
    Smoke = "smoke",
    /// The operations of the fields and curves, for tests.
    Laws = "laws",
    /// The same in chains, for their rates.
    Rates = "rates",
    /// A key's points, from the file's bytes.
    Points = "points",
    /// Multiples of the generators.
    FixedBase = "fixed_base",
    /// Transforms of points.
    GroupNtt = "group_ntt",
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;

    use super::*;

    #[test]
    fn every_folder_of_kernels_is_a_topic() {
        let mut folders = BTreeSet::new();
        for entry in fs::read_dir("kernels").unwrap() {
            let path = entry.unwrap().path();
            let sources = fs::read_dir(&path).unwrap().any(|file| {
                let path = file.unwrap().path();
                path.extension().is_some_and(|extension| extension == "cu")
            });
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            if sources && name != "cub" {
                folders.insert(name);
            }
        }
        let topics: BTreeSet<_> = Topic::ALL
            .iter()
            .map(|topic| topic.name().to_owned())
            .collect();
        assert_eq!(topics, folders);
    }
}
