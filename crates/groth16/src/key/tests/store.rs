//! Which keys are used, what is remembered, and what the errors say.

use std::fs::{File, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::sync::Mutex;
use std::time::{Duration, SystemTime};

use super::*;
use crate::progress::Progress;

const STEM: &str = "v28-test-0011";

/// Remembers which stages were begun.
#[derive(Default)]
struct Stages(Mutex<Vec<&'static str>>);

impl Progress for Stages {
    fn begin(&self, stage: &'static str, _total: u64) {
        self.0.lock().unwrap().push(stage);
    }

    fn advance(&self, _amount: u64) {}
}

/// A folder with a key, a cache folder, and the circuit's specification.
struct Scene {
    keys: TempDir,
    cache: TempDir,
    file: KeyFile,
    spec: KeySpec,
}

impl Scene {
    /// The key's digests are the official ones if `official`.
    fn new(official: bool) -> Self {
        let file = KeyFile::new(COUNTS);
        let vk_bytes = &file.bytes[..COUNTS.vk_bytes() as usize];
        let nothing = KeyDigest::of_bytes(b"");
        let scene = Scene {
            keys: tempfile::tempdir().unwrap(),
            cache: tempfile::tempdir().unwrap(),
            spec: KeySpec {
                circuit: "porep-test".to_owned(),
                stem: STEM.to_owned(),
                sector: "2KiB".to_owned(),
                counts: COUNTS,
                production: Some(if official {
                    ProductionDigests {
                        params: KeyDigest::of_bytes(&file.bytes),
                        vk: KeyDigest::of_bytes(vk_bytes),
                    }
                } else {
                    ProductionDigests {
                        params: nothing,
                        vk: nothing,
                    }
                }),
            },
            file,
        };
        scene.file.write(&scene.params());
        std::fs::write(scene.vk(), &scene.file.bytes[..COUNTS.vk_bytes() as usize]).unwrap();
        scene.age();
        scene
    }

    fn params(&self) -> PathBuf {
        self.keys.path().join(format!("{STEM}.params"))
    }

    fn vk(&self) -> PathBuf {
        self.keys.path().join(format!("{STEM}.vk"))
    }

    /// Makes the file look older than a moment, so that findings are remembered.
    fn age(&self) {
        let old = SystemTime::now() - Duration::from_secs(100);
        File::options()
            .write(true)
            .open(self.params())
            .and_then(|file| file.set_modified(old))
            .unwrap();
    }

    fn write_side_file(&self, edit: impl Fn(&mut SideFile)) {
        let mut side = SideFile {
            format: SideFile::FORMAT,
            warning: SideFile::WARNING.to_owned(),
            circuit: self.spec.circuit.clone(),
            circuit_digest: String::new(),
            seed: 9,
            params_digest: KeyDigest::of_bytes(&self.file.bytes).to_string(),
            vk_digest: KeyDigest::of_bytes(&self.file.bytes[..COUNTS.vk_bytes() as usize])
                .to_string(),
        };
        edit(&mut side);
        std::fs::write(self.keys.path().join(SideFile::name(STEM)), side.to_json()).unwrap();
    }

    fn store(&self, allow_test_keys: bool) -> KeyStore {
        KeyStore {
            folders: vec![
                self.cache.path().join("absent"),
                self.keys.path().to_owned(),
            ],
            cache: Some(self.cache.path().to_owned()),
            allow_test_keys,
        }
    }

    /// Opens both keys; the stages that the proving key took.
    fn open(&self, allow: bool) -> Result<(KeyTrust, Vec<&'static str>), KeyError> {
        let stages = Stages::default();
        let proving = self.store(allow).proving_key(&self.spec, &stages)?;
        let verifying = self.store(allow).verifying_key(&self.spec)?;
        assert_eq!(proving.key.vk(), &verifying.key);
        assert_eq!(proving.trust.notice(), verifying.trust.notice());
        Ok((proving.trust, stages.0.into_inner().unwrap()))
    }

    fn entry(&self) -> PathBuf {
        let mut entries = std::fs::read_dir(self.cache.path().join("keys")).unwrap();
        let entry = entries.next().unwrap().unwrap().path();
        assert!(entries.next().is_none());
        entry
    }
}

#[test]
fn an_official_key_is_hashed_once_and_its_points_are_taken_as_they_are() {
    let scene = Scene::new(true);
    let (trust, stages) = scene.open(false).unwrap();
    assert!(matches!(trust, KeyTrust::Production { .. }));
    assert_eq!(trust.notice(), None);
    assert_eq!(stages, ["digest"]);
    assert_eq!(scene.open(false).unwrap().1, [""; 0]);
    // Nothing was written beside the key.
    assert_eq!(std::fs::read_dir(scene.keys.path()).unwrap().count(), 2);
}

#[test]
fn a_test_key_needs_permission_and_a_full_check() {
    let scene = Scene::new(false);
    scene.write_side_file(|_| ());
    for refused in [
        scene.store(false).proving_key(&scene.spec, &()).map(|_| ()),
        scene.store(false).verifying_key(&scene.spec).map(|_| ()),
    ] {
        assert!(matches!(refused, Err(KeyError::TestKeyNotAllowed { .. })));
    }
    let (trust, stages) = scene.open(true).unwrap();
    assert!(matches!(trust, KeyTrust::Test { seed: 9, .. }));
    assert_eq!(trust.notice(), Some("test key: anyone could forge this"));
    assert_eq!(stages, ["digest", "points"]);
    assert_eq!(scene.open(true).unwrap().1, [""; 0]);
}

#[test]
fn a_test_key_with_a_bad_point_is_refused_every_time() {
    let mut scene = Scene::new(false);
    order_three().encode(scene.file.point_mut("l", 3));
    scene.file.write(&scene.params());
    scene.age();
    scene.write_side_file(|_| ());
    for _ in 0..2 {
        let error = scene.open(true).unwrap_err();
        assert!(
            matches!(
                error,
                KeyError::Point {
                    section: "l",
                    index: 3,
                    ..
                }
            ),
            "{error}"
        );
    }
}

#[test]
fn a_key_that_is_neither_official_nor_a_test_key_is_refused() {
    let scene = Scene::new(false);
    for allow in [false, true] {
        let store = scene.store(allow);
        let proving = store.proving_key(&scene.spec, &()).unwrap_err();
        assert!(matches!(proving, KeyError::Untrusted { .. }));
        let digest = KeyDigest::of_bytes(&scene.file.bytes).to_string();
        assert!(proving.to_string().contains(&digest), "{proving}");
        let verifying = store.verifying_key(&scene.spec).unwrap_err();
        assert!(matches!(verifying, KeyError::Untrusted { .. }));
    }
    // With no official digest at all it is refused just the same.
    let mut spec = scene.spec.clone();
    spec.production = None;
    let error = scene.store(true).proving_key(&spec, &()).unwrap_err();
    assert!(matches!(error, KeyError::Untrusted { expected: None, .. }));
}

#[test]
fn side_files_that_do_not_fit_are_refused() {
    let edits: [fn(&mut SideFile); 4] = [
        |side| side.circuit = "porep-other".to_owned(),
        |side| side.params_digest = KeyDigest::of_bytes(b"other").to_string(),
        |side| side.params_digest = "not a digest".to_owned(),
        |side| side.format = 2,
    ];
    for edit in edits {
        let scene = Scene::new(false);
        scene.write_side_file(edit);
        let error = scene.open(true).unwrap_err();
        assert!(
            matches!(
                error,
                KeyError::TestKeyMismatch { .. } | KeyError::Malformed { .. }
            ),
            "{error}"
        );
    }
    let scene = Scene::new(false);
    for text in ["", "{}", "[[[[", "no JSON"] {
        std::fs::write(scene.keys.path().join(SideFile::name(STEM)), text).unwrap();
        assert!(matches!(scene.open(true), Err(KeyError::Malformed { .. })));
    }
}

#[test]
fn the_two_files_of_a_key_must_agree() {
    let scene = Scene::new(true);
    let mut bytes = std::fs::read(scene.vk()).unwrap();
    bytes[50] ^= 1;
    std::fs::write(scene.vk(), &bytes).unwrap();
    let error = scene
        .store(false)
        .proving_key(&scene.spec, &())
        .unwrap_err();
    assert!(matches!(error, KeyError::PairMismatch { .. }));
    bytes.push(0);
    std::fs::write(scene.vk(), &bytes).unwrap();
    let error = scene
        .store(false)
        .proving_key(&scene.spec, &())
        .unwrap_err();
    assert!(matches!(error, KeyError::PairMismatch { .. }));
    // To prove, the parameter file alone will do.
    std::fs::remove_file(scene.vk()).unwrap();
    scene.store(false).proving_key(&scene.spec, &()).unwrap();
}

#[test]
fn missing_files_are_reported_with_all_that_is_needed_to_get_them() {
    let scene = Scene::new(false);
    std::fs::remove_file(scene.params()).unwrap();
    let error = scene.open(false).unwrap_err();
    let KeyError::Missing(missing) = &error else {
        panic!("{error}");
    };
    assert_eq!(missing.bytes, COUNTS.params_bytes());
    assert_eq!(missing.searched.len(), 2);
    let text = error.to_string();
    for part in [
        "v28-test-0011.params",
        "porep-test",
        &COUNTS.params_bytes().to_string(),
        &KeyDigest::of_bytes(b"").to_string(),
        "lotus fetch-params 2KiB",
        "curio fetch-params 2KiB",
        scene.keys.path().to_str().unwrap(),
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
    let nowhere = KeyStore::default().verifying_key(&scene.spec).unwrap_err();
    assert!(
        nowhere.to_string().contains("no folder was given"),
        "{nowhere}"
    );
}

#[test]
fn a_changed_file_is_checked_anew() {
    let scene = Scene::new(true);
    scene.open(false).unwrap();
    let mut spoiled = scene.file.clone();
    spoiled.point_mut("h", 3)[95] ^= 1;
    spoiled.write(&scene.params());
    assert!(matches!(scene.open(false), Err(KeyError::Untrusted { .. })));
}

#[test]
fn entries_that_cannot_be_believed_are_ignored_and_replaced() {
    let scene = Scene::new(true);
    scene.open(false).unwrap();
    let entry = scene.entry();
    let good = std::fs::read_to_string(&entry).unwrap();
    let digest = KeyDigest::of_bytes(&scene.file.bytes).to_string();
    let other = KeyDigest::of_bytes(b"other").to_string();
    for text in [
        String::new(),
        "{}".to_owned(),
        good[..good.len() / 2].to_owned(),
        // The digest exchanged without its checksum.
        good.replace(&digest, &other),
        good.replace("unchecked", "sound"),
        good.replace("\"format\": 1", "\"format\": 2"),
        "9".repeat(100_000),
    ] {
        std::fs::write(&entry, text).unwrap();
        let (trust, stages) = scene.open(false).unwrap();
        assert!(matches!(trust, KeyTrust::Production { .. }));
        assert_eq!(stages, ["digest"]);
        assert_eq!(std::fs::read_to_string(&entry).unwrap(), good);
    }
    // An entry that others may write to could be anyone's.
    std::fs::set_permissions(&entry, Permissions::from_mode(0o666)).unwrap();
    assert_eq!(scene.open(false).unwrap().1, ["digest"]);
    assert_eq!(scene.open(false).unwrap().1, [""; 0]);
}

#[test]
fn a_file_written_a_moment_ago_is_not_remembered() {
    let scene = Scene::new(true);
    scene.file.write(&scene.params());
    assert_eq!(scene.open(false).unwrap().1, ["digest"]);
    assert_eq!(scene.open(false).unwrap().1, ["digest"]);
}

#[test]
fn without_a_usable_cache_folder_keys_work_all_the_same() {
    let scene = Scene::new(true);
    let mut store = scene.store(false);
    store.cache = None;
    store.proving_key(&scene.spec, &()).unwrap();
    // A file where the folder should be.
    store.cache = Some(scene.params());
    store.proving_key(&scene.spec, &()).unwrap();
}
