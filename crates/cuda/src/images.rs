//! The kernels' machine code, as nvcc made it.

use crate::fatbin::{self, Target};
use crate::topic::Topic;

/// The fatbin of one source.
pub struct Image {
    topic: &'static str,
    /// The source's name, without its folder and extension.
    source: &'static str,
    /// The fatbin.
    pub bytes: &'static [u8],
}

/// The fatbins of a topic.
pub fn of(topic: Topic) -> impl Iterator<Item = &'static Image> {
    IMAGES
        .iter()
        .filter(move |image| image.topic == topic.name())
}

/// The targets for which every source has code, and `topic/source` of each image that lacks one
/// that another has: none, unless the build is broken.
pub fn targets() -> (Vec<Target>, Vec<String>) {
    let sets: Vec<Vec<Target>> = IMAGES
        .iter()
        .map(|image| fatbin::targets(image.bytes).unwrap_or_default())
        .collect();
    let all = sets.first().cloned().unwrap_or_default();
    let odd = IMAGES
        .iter()
        .zip(&sets)
        .filter(|(_, set)| **set != all)
        .map(|(image, _)| format!("{}/{}", image.topic, image.source))
        .collect();
    (all, odd)
}

static IMAGES: &[Image] = include!(concat!(env!("OUT_DIR"), "/images.rs"));

#[cfg(test)]
mod tests {
    use super::*;

    /// The targets that build.rs was asked for.
    fn asked_for() -> Vec<Target> {
        let mut targets = Vec::new();
        for name in env!("CUZK_CUDA_ARCHS").split(',') {
            let number = name.trim_end_matches("+ptx");
            let arch = number.parse().unwrap();
            targets.push(Target { arch, ptx: false });
            if number != name {
                targets.push(Target { arch, ptx: true });
            }
        }
        targets.sort_unstable();
        targets
    }

    #[test]
    fn every_image_holds_code_for_every_target() {
        let (mut found, odd) = targets();
        assert_eq!(odd, [""; 0]);
        found.sort_unstable();
        assert_eq!(found, asked_for());
        assert!(Topic::ALL.iter().all(|topic| of(*topic).next().is_some()));
    }
}
