//! Questions and orders of ethtool whose answers have no fixed length (<linux/ethtool.h>).

use std::io;

use super::interface::ethtool;
use super::socket::Socket;

/// Words that an answer may have: texts of 32 bytes for each of 131,072 statistics. Drivers have a few thousand.
const ROOM: usize = 1 << 20;

/// Asks with `words`, of which the first is the command, and gets as many words of the answer as there are.
///
/// # Errors
///
/// `EOPNOTSUPP` where the driver does not know the command, `EPERM` without the right, and whatever else the driver says.
pub(crate) fn ask(socket: &Socket, name: &str, words: &mut [u32]) -> io::Result<()> {
    // The kernel asks the driver how long an answer is, not whoever asks: there must be room for any.
    let mut room = vec![0; ROOM.max(words.len())];
    room[..words.len()].copy_from_slice(words);
    ethtool(socket, name, &mut room)?;
    let len = words.len();
    words.copy_from_slice(&room[..len]);
    Ok(())
}
