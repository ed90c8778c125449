//! FTP (RFC 959, RFC 2428): one file, in passive mode.

use core::net::IpAddr;

use super::scene::{ActiveSession, exchange};
use crate::dialogue::Side::{Client, Server};

pub(super) fn play(scene: &mut ActiveSession<'_>) {
    if !scene.look_up() {
        return;
    }
    let mut control = scene.connection(None);
    control.connect();
    let number = scene.random.below(100_000);
    let port = 20_000 + scene.random.below(30_000) as u16;
    let (asked, entered) = match scene.server() {
        IpAddr::V4(address) => {
            let [a, b, c, d] = address.octets();
            let [high, low] = port.to_be_bytes();
            ("PASV\r\n", format!("227 Entering Passive Mode ({a},{b},{c},{d},{high},{low}).\r\n"))
        }
        IpAddr::V6(_) => {
            ("EPSV\r\n", format!("229 Entering Extended Passive Mode (|||{port}|)\r\n"))
        }
    };
    let lines = [
        (Server, "220 (vsFTPd 3.0.3)\r\n"),
        (Client, "USER anonymous\r\n"),
        (Server, "331 Please specify the password.\r\n"),
        (Client, "PASS guest@example.org\r\n"),
        (Server, "230 Login successful.\r\n"),
        (Client, "TYPE I\r\n"),
        (Server, "200 Switching to Binary mode.\r\n"),
        (Client, asked),
        (Server, &entered),
    ];
    exchange(scene, &mut control, &lines.map(|(side, line)| (side, line.to_owned())));
    // The data come on a connection of their own, beside this one.
    let mut data = scene.connection(Some(port));
    data.pause_until(control.now()).connect();
    let len = scene.size(5_000, 400_000);
    let file = format!("file{number}.bin");
    control.pause_until(data.now()).say(Client, format!("RETR {file}\r\n").as_bytes());
    let opening = format!("150 Opening BINARY mode data connection for {file} ({len} bytes).\r\n");
    control.say(Server, opening.as_bytes());
    data.pause_until(control.now()).say(Server, &scene.noise(len)).close(Server).close(Client);
    control.pause_until(data.now());
    scene.end(data);
    let lines = [
        (Server, "226 Transfer complete.\r\n"),
        (Client, "QUIT\r\n"),
        (Server, "221 Goodbye.\r\n"),
    ];
    exchange(scene, &mut control, &lines.map(|(side, line)| (side, line.to_owned())));
    control.close(Server).close(Client);
    scene.end(control);
}
