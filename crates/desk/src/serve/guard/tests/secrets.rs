//! What is refused before anybody is served: addresses without TLS, and secrets that are none.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use netsniff_console::UsageError;

use super::*;

/// A folder that goes with the test.
pub(super) struct Folder(PathBuf);

impl Folder {
    pub(super) fn new(name: &str) -> Self {
        let path =
            std::env::temp_dir().join(format!("netsniff-guard-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub(super) fn file(&self, name: &str, content: &str, mode: u32) -> String {
        let path = self.0.join(name);
        fs::write(&path, content).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        path.to_str().unwrap().to_owned()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The sentence with which arguments are refused as wrong usage.
pub(super) fn refusal(arguments: &[&str]) -> String {
    let error = open(arguments).err().unwrap_or_else(|| panic!("{arguments:?} are accepted"));
    assert!(error.is::<UsageError>(), "{error:#}");
    error.to_string()
}

#[test]
fn others_are_served_over_tls_alone_and_with_a_token() {
    for address in ["0.0.0.0:0", "[::]:0", "192.0.2.1:0"] {
        assert!(refusal(&["--listen", address, "--token"]).contains("--tls-self-signed"));
    }
    let guard =
        open(&["--listen", "0.0.0.0:0", "--tls-self-signed", "--name", "a.example"]).unwrap();
    let port = guard.listener.local_addr().unwrap().port();
    let begin = format!("https://a.example:{port}/?token=");
    assert!(guard.address().starts_with(&begin), "{}", guard.address());
    assert!(guard.address().len() >= begin.len() + 43);
}

#[test]
fn a_token_file_has_a_token_that_others_cannot_read() {
    let folder = Folder::new("token");
    let token = "0123456789abcdef-._~";
    let good = folder.file("good", &format!("{token}\n"), 0o600);
    let server = Server::with(&["--token-file", &good]);
    assert!(!server.url.contains(token), "{}", server.url);
    assert_eq!(server.status(&format!("GET / HTTP/1.1\r\nAuthorization: Bearer {token}")), 200);
    assert_eq!(server.status("GET / HTTP/1.1"), 401);
    for (name, content, mode, said) in [
        ("read", token, 0o644, "chmod 600"),
        ("written", token, 0o602, "chmod 600"),
        ("short", "0123456789abcde", 0o600, "16 to 256"),
        ("empty", "", 0o600, "16 to 256"),
        ("odd", "0123456789abcdef&", 0o600, "16 to 256"),
        ("two", "0123456789abcdef 0123456789abcdef", 0o600, "16 to 256"),
        ("long", &"a".repeat(100_000), 0o600, "longer than"),
    ] {
        let path = folder.file(name, content, mode);
        assert!(refusal(&["--token-file", &path]).contains(said), "{name}");
    }
    assert!(open(&["--token-file", "/nowhere/token"]).is_err());
    assert!(Path::new(&good).exists());
}

#[test]
fn arguments_that_lack_their_other_half_are_refused() {
    for words in [
        &["--tls-cert", "a"][..],
        &["--tls-key", "a"],
        &["--tls-cert", "a", "--tls-key", "b", "--tls-self-signed"],
        &["--listen", "localhost"],
        &["--name", "a b"],
        &["--name", "a/b"],
        &["--name", ""],
    ] {
        let words = ["serve"].into_iter().chain(words.iter().copied());
        assert!(Command::try_parse_from(words).is_err());
    }
}
