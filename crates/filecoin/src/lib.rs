//! Filecoin proof kinds: requests, public inputs, vanilla checks, circuit registry, proof bytes.
