//! The configuration file, as far as these commands use it, and the folders that
//! follow from it. Old daemon files load as they are: keys of theirs that mean
//! nothing here are passed over, keys that nobody knows get a warning.

use std::env;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use toml::{Table, Value};

use crate::cli::Global;
use crate::failure::{Exit, Failure};

const DEFAULT_FILE: &str = "/data/zk/cuzk.toml";
const DEFAULT_PARAMS: &str = "/var/tmp/filecoin-proof-parameters";
const SYSTEM_CACHE: &str = "/var/cache/cuzk";

/// What the configuration, the environment and the global options say.
#[derive(Debug)]
pub struct Config {
    /// `srs.allow_test_keys`.
    pub allow_test_keys: bool,
    /// Things to tell the user.
    pub warnings: Vec<String>,
    file: Option<PathBuf>,
    params: Vec<PathBuf>,
    cache: PathBuf,
}

impl Config {
    /// Reads the file named by `--config`, or the default one where it exists.
    ///
    /// # Errors
    /// `CONFIG_INVALID` when the file cannot be read, is not TOML or holds a value of the wrong type;
    /// `CACHE_UNKNOWN` when there is no place for the cache folder.
    pub fn load(global: &Global) -> Result<Self, Failure> {
        let (file, table) = read(global.config.as_deref())?;
        let name = file.as_deref().unwrap_or(Path::new(DEFAULT_FILE));
        let param_cache = text(name, &table, "srs", "param_cache")?;
        let cache_dir = text(name, &table, "cache", "dir")?;
        let allow_test_keys = match get(&table, "srs", "allow_test_keys") {
            None => false,
            Some(Value::Boolean(b)) => *b,
            Some(_) => return Err(wrong_type(name, "srs.allow_test_keys", "true or false")),
        };
        Ok(Self {
            allow_test_keys,
            warnings: unknown_keys(name, &table),
            params: production_folders(
                param_cache,
                env::var_os("FIL_PROOFS_PARAMETER_CACHE").map(Into::into),
            ),
            cache: cache_folder(global.cache.clone(), cache_dir)?,
            file,
        })
    }

    /// The file that was read, if any was.
    pub fn file(&self) -> Option<&Path> {
        self.file.as_deref()
    }

    /// The cache folder; it may not exist yet.
    pub fn cache(&self) -> &Path {
        &self.cache
    }

    /// Where test keys live by default.
    pub fn test_keys(&self) -> PathBuf {
        self.cache.join("test-keys")
    }

    /// Folders where production keys are looked for, in order.
    pub fn production_folders(&self) -> &[PathBuf] {
        &self.params
    }

    /// Folders to search for keys: `only` alone when given, else the production folders and,
    /// where test keys are allowed, the folder of test keys after them.
    pub fn key_folders(&self, only: Option<&Path>, test_keys: bool) -> Vec<PathBuf> {
        if let Some(only) = only {
            return vec![only.to_owned()];
        }
        let mut folders = self.params.clone();
        if test_keys {
            folders.push(self.test_keys());
        }
        folders
    }
}

fn read(named: Option<&Path>) -> Result<(Option<PathBuf>, Table), Failure> {
    let path = named.unwrap_or(Path::new(DEFAULT_FILE));
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(e) if named.is_none() && e.kind() == io::ErrorKind::NotFound => {
            return Ok((None, Table::new()));
        }
        Err(e) => return Err(invalid(path, "cannot be read").because(&e)),
    };
    let table = text
        .parse::<Table>()
        .map_err(|e| invalid(path, "is not valid TOML").because(&e))?;
    Ok((Some(path.to_owned()), table))
}

fn invalid(path: &Path, what: &str) -> Failure {
    Failure::new(
        Exit::Usage,
        "CONFIG_INVALID",
        format!("configuration file {} {what}", path.display()),
        "correct the file, or name another one with --config",
    )
}

fn wrong_type(path: &Path, key: &str, expected: &str) -> Failure {
    invalid(
        path,
        &format!("has a wrong value for {key}: expected {expected}"),
    )
}

fn get<'a>(table: &'a Table, section: &str, key: &str) -> Option<&'a Value> {
    table.get(section)?.as_table()?.get(key)
}

/// A path given as text; empty text counts as not given.
fn text(path: &Path, table: &Table, section: &str, key: &str) -> Result<Option<PathBuf>, Failure> {
    match get(table, section, key) {
        None => Ok(None),
        Some(Value::String(s)) => Ok((!s.is_empty()).then(|| s.into())),
        Some(_) => Err(wrong_type(
            path,
            &format!("{section}.{key}"),
            "a path in quotes",
        )),
    }
}

fn unknown_keys(path: &Path, table: &Table) -> Vec<String> {
    let warnings = server::config::unused(table).into_iter();
    warnings
        .filter(server::config::Warning::is_unknown)
        .map(|warning| format!("{}: {warning}", path.display()))
        .collect()
}

fn production_folders(config: Option<PathBuf>, environment: Option<PathBuf>) -> Vec<PathBuf> {
    let environment = environment.filter(|p| !p.as_os_str().is_empty());
    let mut folders: Vec<PathBuf> = Vec::new();
    for folder in [config, environment, Some(DEFAULT_PARAMS.into())]
        .into_iter()
        .flatten()
    {
        if !folders.contains(&folder) {
            folders.push(folder);
        }
    }
    folders
}

fn cache_folder(option: Option<PathBuf>, config: Option<PathBuf>) -> Result<PathBuf, Failure> {
    let environment = |name: &str| {
        env::var_os(name)
            .filter(|v| !v.is_empty())
            .map(PathBuf::from)
    };
    option
        .or_else(|| environment("CUZK_CACHE"))
        .or(config)
        .or_else(|| writable(Path::new(SYSTEM_CACHE)).then(|| SYSTEM_CACHE.into()))
        .or_else(|| {
            environment("XDG_CACHE_HOME")
                .filter(|p| p.is_absolute())
                .map(|p| p.join("cuzk"))
        })
        .or_else(|| environment("HOME").map(|p| p.join(".cache/cuzk")))
        .ok_or_else(|| {
            Failure::new(
                Exit::Usage,
                "CACHE_UNKNOWN",
                "there is no place for the cache folder: neither HOME nor XDG_CACHE_HOME is set",
                "name one with --cache DIR or the environment variable CUZK_CACHE",
            )
        })
}

fn writable(folder: &Path) -> bool {
    folder.is_dir() && rustix::fs::access(folder, rustix::fs::Access::WRITE_OK).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn global(config: &Path) -> Global {
        Global {
            json: false,
            quiet: false,
            threads: None,
            cache: Some("/c".into()),
            config: Some(config.into()),
        }
    }

    fn load(text: &str) -> Result<Config, Failure> {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), text).unwrap();
        Config::load(&global(file.path()))
    }

    #[test]
    fn an_old_daemon_file_loads() {
        let text = "[daemon]\nlisten = \"0.0.0.0:9820\"\n[srs]\nparam_cache = \"/p\"\npreload = []\n\
                    [gpus.affinity]\n0 = [1]\n[scheduler]\nsort_by_type = true\n";
        let config = load(text).unwrap();
        assert!(config.warnings.is_empty(), "{:?}", config.warnings);
        assert_eq!(config.production_folders()[0], Path::new("/p"));
        assert!(!config.allow_test_keys);
        assert_eq!(
            config.key_folders(Some(Path::new("/only")), true),
            [Path::new("/only")]
        );
        assert_eq!(
            config.key_folders(None, true).last().unwrap(),
            Path::new("/c/test-keys")
        );
        assert!(
            !config
                .key_folders(None, false)
                .contains(&config.test_keys())
        );
    }

    #[test]
    fn unknown_keys_warn_and_wrong_types_fail() {
        let config =
            load("colour = 1\n[srs]\nallow_test_keys = true\nallow_testkeys = true\n").unwrap();
        assert_eq!(config.warnings.len(), 2);
        assert!(config.allow_test_keys);
        for text in [
            "[srs]\nparam_cache = 3\n",
            "[srs]\nallow_test_keys = \"yes\"\n",
            "[srs\n",
            "[cache]\ndir = []",
        ] {
            let failure = load(text).unwrap_err();
            assert_eq!(
                (failure.exit, failure.code),
                (Exit::Usage, "CONFIG_INVALID"),
                "{text}"
            );
        }
        assert_eq!(
            Config::load(&global(Path::new("/nonexistent")))
                .unwrap_err()
                .code,
            "CONFIG_INVALID"
        );
    }

    #[test]
    fn folders_are_listed_once_and_empty_ones_not_at_all() {
        let folders = production_folders(Some(DEFAULT_PARAMS.into()), Some("".into()));
        assert_eq!(folders, [Path::new(DEFAULT_PARAMS)]);
        let folders = production_folders(Some("/a".into()), Some("/b".into()));
        assert_eq!(
            folders,
            [Path::new("/a"), Path::new("/b"), Path::new(DEFAULT_PARAMS)]
        );
    }
}
