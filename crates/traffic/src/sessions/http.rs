//! HTTP/1.1 (RFC 9112): some requests on one connection.

use core::time::Duration;

use super::scene::ActiveSession;
use crate::dialogue::Side;

pub(super) fn play(scene: &mut ActiveSession<'_>) {
    if !scene.look_up() {
        return;
    }
    let mut dialogue = scene.connection(None);
    dialogue.connect();
    let host = scene.name();
    let requests = 1 + scene.random.below(4);
    for number in 0..requests {
        let page = scene.random.below(100_000);
        let is_file = number > 0;
        let path = if is_file { format!("/{page}.bin") } else { format!("/{page}.html") };
        let request = format!(
            "GET {path} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: Mozilla/5.0 (X11; Linux x86_64)\r\n\
             Accept: */*\r\nConnection: keep-alive\r\n\r\n"
        );
        dialogue.say(Side::Client, request.as_bytes());
        let thought = scene.moment(Duration::from_millis(10));
        dialogue.pause(thought).say(Side::Server, &response(scene, is_file));
        let looked = scene.moment(Duration::from_millis(100));
        dialogue.pause(looked);
    }
    dialogue.close(Side::Client).close(Side::Server);
    scene.end(dialogue);
}

fn response(scene: &mut ActiveSession<'_>, is_file: bool) -> Vec<u8> {
    if scene.random.chance(0.05) {
        return b"HTTP/1.1 404 Not Found\r\nServer: nginx\r\nContent-Type: text/plain\r\nContent-Length: 14\r\n\r\n\
            not found here"
            .to_vec();
    }
    let len = scene.size(2_000, 400_000);
    let (kind, body) = if is_file {
        ("application/octet-stream", scene.noise(len))
    } else {
        let text = scene.text(len);
        let page = [b"<!DOCTYPE html>\r\n<html><body><p>", &text[..], b"</p></body></html>\r\n"];
        ("text/html", page.concat())
    };
    let header = format!(
        "HTTP/1.1 200 OK\r\nServer: nginx\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    [header.as_bytes(), &body].concat()
}
