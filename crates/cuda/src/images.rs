//! The kernels' machine code, as nvcc made it.

use crate::topic::Topic;

/// The fatbin of one source.
pub struct Image {
    topic: &'static str,
    /// The source's name, without its folder and extension.
    #[allow(dead_code, reason = "names the image in tests")]
    pub source: &'static str,
    /// The fatbin.
    pub bytes: &'static [u8],
}

/// The fatbins of a topic.
pub fn of(topic: Topic) -> impl Iterator<Item = &'static Image> {
    IMAGES
        .iter()
        .filter(move |image| image.topic == topic.name())
}

static IMAGES: &[Image] = include!(concat!(env!("OUT_DIR"), "/images.rs"));
