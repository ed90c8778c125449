//! What Zeek tells of protocols that netsniff does not know.

use netsniff_analysis::protocol::ProtocolId;

use super::log::Row;

/// Whether Zeek found a protocol in the connection named `uid` that netsniff does not know: then
/// what it tells of that connection is not compared.
pub(crate) fn is_in(uid: &str, conn: &[Row]) -> bool {
    let services = conn.iter().filter(|conn| conn["uid"] == uid);
    let mut names = services.flat_map(|conn| conn["service"].split(','));
    names.any(|name| name != "-" && ProtocolId::named(name).is_none())
}
