//! The logs of the core, one file each. Those of protocols stand beside them; the list of all is
//! [`LOGS`](crate::rows::LOGS).

pub mod capture;
pub mod conn;
pub mod exported;
pub mod exporters;
pub mod gaps;
pub mod intel;
pub mod notice;
pub mod rtt;
pub mod series;
pub mod series_conn;
pub mod tcp;
pub mod tunnel;
pub mod weird;

pub use capture::Capture;
pub use conn::Conn;
pub use exported::Exported;
pub use exporters::Exporters;
pub use gaps::Gaps;
pub use intel::Intel;
pub use notice::{Confidence, Notice};
pub use rtt::Rtt;
pub use series::Series;
pub use series_conn::SeriesConn;
pub use tcp::{Tcp, TcpSide};
pub use tunnel::Tunnel;
pub use weird::Weird;
