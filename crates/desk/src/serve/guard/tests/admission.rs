//! Users, hosts, tokens, and pages of other sites.

use super::*;

#[test]
fn the_user_is_served_and_every_answer_has_the_headers() {
    let server = Server::with(&[]);
    assert!(server.url.starts_with("http://127.0.0.1:"), "{}", server.url);
    let page = server.ask("GET / HTTP/1.1");
    assert_eq!((page.status, page.body.as_str()), (200, "the page"));
    let answers = [page, server.ask("GET /none HTTP/1.1"), server.ask("GET / HTTP/1.1\r\nHost: x")];
    assert_eq!(answers.each_ref().map(|answer| answer.status), [200, 404, 421]);
    for answer in &answers {
        let policy = answer.header("content-security-policy").unwrap();
        assert!(policy.starts_with("default-src 'none'; script-src 'self'; "), "{policy}");
        assert!(!policy.contains("unsafe"), "{policy}");
        for (name, value) in [
            ("x-content-type-options", "nosniff"),
            ("referrer-policy", "same-origin"),
            ("cross-origin-opener-policy", "same-origin"),
            ("cross-origin-resource-policy", "same-origin"),
            ("cache-control", "no-store"),
        ] {
            assert_eq!(answer.header(name), Some(value), "{}", answer.head);
        }
    }
}

#[cfg(target_os = "linux")]
#[test]
fn connections_of_other_users_are_refused() {
    let own = rustix::process::geteuid().as_raw();
    assert_eq!(for_users(&[own]).status("GET / HTTP/1.1"), 200);
    let refused = for_users(&[own + 1]).ask("GET / HTTP/1.1");
    assert_eq!(refused.status, 403);
    assert!(refused.body.contains("--token"), "{}", refused.body);
    assert_eq!(refused.header("connection"), Some("close"));
}

#[cfg(target_os = "linux")]
#[test]
fn a_process_of_another_user_is_refused() {
    use std::os::unix::process::CommandExt as _;
    let what = "nobody else has connected";
    if !rustix::process::geteuid().is_root() {
        netsniff_testing::skip(netsniff_testing::Need::Root, what);
        return;
    }
    if !netsniff_testing::has_program("bash", what) {
        return;
    }
    let server = Server::with(&[]);
    let port = server.address.port();
    let script = format!(
        "exec 3<>/dev/tcp/127.0.0.1/{port}; \
         printf 'GET / HTTP/1.1\\r\\nHost: localhost\\r\\nConnection: close\\r\\n\\r\\n' >&3; cat <&3"
    );
    let status = |user: u32| {
        let mut client = std::process::Command::new("bash");
        client.args(["-c", &script]).current_dir("/").uid(user);
        let output = client.output().unwrap();
        Answer::read(&mut &output.stdout[..]).status
    };
    assert_eq!(status(0), 200);
    assert_eq!(status(4242), 403);
}

#[test]
fn a_host_of_another_name_is_refused() {
    let server = Server::with(&["--name", "Sensor.example", "--name", "192.0.2.7"]);
    let status = |host: &str| server.status(&format!("GET / HTTP/1.1\r\nHost: {host}"));
    for own in [
        "127.0.0.1",
        "127.0.0.1:9",
        "localhost",
        "LOCALHOST:80",
        "localhost.",
        "[::1]:80",
        "[::ffff:127.0.0.1]",
        "sensor.EXAMPLE:1",
        "192.0.2.7",
    ] {
        assert_eq!(status(own), 200, "{own}");
    }
    for other in [
        "evil.example",
        "localhost.evil.example",
        "127.0.0.1.evil.example",
        "192.0.2.1",
        "2130706433",
        "0.0.0.0",
        "[2001:db8::1]",
    ] {
        assert_eq!(status(other), 421, "{other}");
    }
    for malformed in ["", "a b", "evil@localhost", "localhost/", "localhost\r\nHost: localhost"] {
        assert_eq!(status(malformed), 400, "{malformed}");
    }
    assert_eq!(server.status("GET http://evil.example/ HTTP/1.1\r\nHost: localhost"), 400);
    let mut stream = server.connect();
    stream.write_all(b"GET / HTTP/1.0\r\n\r\n").unwrap();
    assert_eq!(Answer::read(&mut stream).status, 400);
}

#[test]
fn what_a_page_of_another_site_asks_for_is_refused() {
    let server = Server::with(&[]);
    for (head, status) in [
        ("POST /act HTTP/1.1", 200),
        ("POST /act HTTP/1.1\r\nOrigin: http://127.0.0.1", 200),
        ("POST /act HTTP/1.1\r\nHost: localhost:7\r\nOrigin: http://LOCALHOST:7", 200),
        ("POST /act HTTP/1.1\r\nSec-Fetch-Site: same-origin", 200),
        ("POST /act HTTP/1.1\r\nOrigin: http://127.0.0.1:81", 403),
        ("POST /act HTTP/1.1\r\nOrigin: http://evil.example", 403),
        ("POST /act HTTP/1.1\r\nOrigin: null", 403),
        ("POST /act HTTP/1.1\r\nOrigin: 127.0.0.1", 403),
        ("POST /act HTTP/1.1\r\nOrigin: http://127.0.0.1\r\nSec-Fetch-Site: cross-site", 403),
        ("DELETE / HTTP/1.1\r\nOrigin: http://evil.example", 403),
        ("GET / HTTP/1.1\r\nSec-Fetch-Site: none", 200),
        ("GET / HTTP/1.1\r\nSec-Fetch-Site: same-origin\r\nSec-Fetch-Mode: cors", 200),
        ("GET / HTTP/1.1\r\nSec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: no-cors", 403),
        ("GET / HTTP/1.1\r\nSec-Fetch-Site: same-site", 403),
    ] {
        assert_eq!(server.status(head), status, "{head}");
    }
    // A link may lead here; a frame or a form may not.
    let link =
        "HTTP/1.1\r\nSec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: navigate\r\nSec-Fetch-Dest:";
    assert_eq!(server.status(&format!("GET / {link} document")), 200);
    assert_eq!(server.status(&format!("GET / {link} iframe")), 403);
    assert_eq!(server.status(&format!("POST /act {link} document")), 403);
}

#[test]
fn a_token_opens_once_by_the_address_and_then_by_the_cookie() {
    let server = Server::with(&["--token"]);
    let (token, port) = (server.token().to_owned(), server.address.port());
    assert!(token.len() >= 43, "{token}");
    let missing = server.ask("GET / HTTP/1.1");
    assert_eq!((missing.status, missing.header("www-authenticate")), (401, Some("Bearer")));
    assert_eq!(server.status("GET /?token=wrong HTTP/1.1"), 401);
    assert_eq!(server.status("GET /?token= HTTP/1.1"), 401);
    assert_eq!(server.status(&format!("POST /act?token={token} HTTP/1.1")), 401);

    let opened = server.ask(&format!("GET /x?a=1&token={token}&b=2 HTTP/1.1"));
    assert_eq!((opened.status, opened.header("location")), (303, Some("/x?a=1&b=2")));
    let cookie = opened.header("set-cookie").unwrap();
    let (pair, rest) = cookie.split_once("; ").unwrap();
    assert_eq!(rest, "Path=/; HttpOnly; SameSite=Strict");
    assert!(pair.starts_with(&format!("netsniff-{port}=")) && !cookie.contains(&token), "{cookie}");
    let shown = format!("\r\nCookie: other=1; {pair}; netsniff-1=2");
    assert_eq!(server.status(&format!("GET / HTTP/1.1{shown}")), 200);
    assert_eq!(server.status(&format!("GET / HTTP/1.1\r\nCookie: {pair}x")), 401);
    assert_eq!(server.status(&format!("GET / HTTP/1.1\r\nCookie: netsniff-{port}={token}")), 401);
    assert_eq!(server.status(&format!("GET / HTTP/1.1{shown}\r\nHost: evil.example")), 421);
    // No address of ours leads elsewhere.
    let elsewhere = server.ask(&format!("GET //evil.example/?token={token} HTTP/1.1"));
    assert_eq!(elsewhere.header("location"), Some("/evil.example/"));

    // A cookie is sent by itself, so that the browser must tell whose page asked; scripts show the token.
    assert_eq!(server.status(&format!("POST /act HTTP/1.1{shown}")), 403);
    assert_eq!(
        server.status(&format!("POST /act HTTP/1.1{shown}\r\nOrigin: http://127.0.0.1")),
        200
    );
    let bearer = format!("\r\nAuthorization: bearer {token}");
    assert_eq!(server.status(&format!("POST /act HTTP/1.1{bearer}")), 200);
    assert_eq!(server.status(&format!("GET / HTTP/1.1{bearer}")), 200);
    assert_eq!(server.status("GET / HTTP/1.1\r\nAuthorization: Bearer wrong"), 401);
    assert_eq!(server.status(&format!("GET / HTTP/1.1\r\nAuthorization: Basic {token}")), 401);
    assert_ne!(Server::with(&["--token"]).token(), token);
}
