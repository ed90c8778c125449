//! SMTP (RFC 5321): one mail.

use core::time::Duration;

use super::scene::{ActiveSession, exchange};
use crate::dialogue::Side::{Client, Server};

pub(super) fn play(scene: &mut ActiveSession<'_>) {
    if !scene.look_up() {
        return;
    }
    let mut dialogue = scene.connection(None);
    dialogue.connect();
    let (host, number) = (scene.name(), scene.random.below(1_000_000));
    let (from, to) =
        (format!("user{}@example.org", number % 500), format!("box{}@example.com", number % 77));
    let greeting = [
        (Server, format!("220 {host} ESMTP Postfix\r\n")),
        (Client, "EHLO client.example.org\r\n".to_owned()),
        (Server, format!("250-{host}\r\n250-PIPELINING\r\n250-SIZE 10240000\r\n250 8BITMIME\r\n")),
        (Client, format!("MAIL FROM:<{from}>\r\n")),
        (Server, "250 2.1.0 Ok\r\n".to_owned()),
        (Client, format!("RCPT TO:<{to}>\r\n")),
        (Server, "250 2.1.5 Ok\r\n".to_owned()),
        (Client, "DATA\r\n".to_owned()),
        (Server, "354 End data with <CR><LF>.<CR><LF>\r\n".to_owned()),
    ];
    exchange(scene, &mut dialogue, &greeting);
    let header = format!(
        "From: <{from}>\r\nTo: <{to}>\r\nSubject: Report {number}\r\n\
         Message-ID: <{number}@client.example.org>\r\n\r\n"
    );
    let len = scene.size(800, 200_000);
    let mail = [header.as_bytes(), &scene.text(len), b"\r\n.\r\n"].concat();
    dialogue.say(Client, &mail);
    let stored = scene.moment(Duration::from_millis(30));
    dialogue.pause(stored);
    let parting = [
        (Server, format!("250 2.0.0 Ok: queued as {number:X}\r\n")),
        (Client, "QUIT\r\n".to_owned()),
        (Server, "221 2.0.0 Bye\r\n".to_owned()),
    ];
    exchange(scene, &mut dialogue, &parting);
    dialogue.close(Server).close(Client);
    scene.end(dialogue);
}
