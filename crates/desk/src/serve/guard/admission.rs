//! Whether a request is answered: by the host that it names, by who asks, and by the page that made a browser ask.

use std::net::{IpAddr, SocketAddr};

use axum::body::Body;
use axum::http::header::{CONNECTION, CONTENT_TYPE, HOST, LOCATION, ORIGIN, SET_COOKIE};
use axum::http::header::{HeaderName, HeaderValue, WWW_AUTHENTICATE};
use axum::http::request::Parts;
use axum::http::uri::Authority;
use axum::http::{HeaderMap, Method, Response, StatusCode};

use super::token::{Shown, Token};
use super::users::Users;

const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
const FETCH_MODE: HeaderName = HeaderName::from_static("sec-fetch-mode");
const FETCH_DEST: HeaderName = HeaderName::from_static("sec-fetch-dest");

/// Who may look.
pub(super) enum Door {
    /// Users of this host.
    Users(Users),
    /// Whoever knows the token.
    Token(Token),
}

/// What every request is judged by.
pub(super) struct Rules {
    pub(super) door: Door,
    /// Names and addresses of this host besides those that the socket has, in small letters.
    pub(super) names: Vec<String>,
    pub(super) has_tls: bool,
}

/// The connection of a request.
#[derive(Clone, Copy)]
pub(super) struct Caller {
    /// Our end.
    pub(super) local: SocketAddr,
    /// Whether one of the users has it; it does not matter where a token is asked for.
    pub(super) is_of_users: bool,
}

/// What becomes of a request that is not refused.
pub(super) enum Entry {
    /// A page may answer.
    Admitted,
    /// The address had the token: the browser gets the cookie, and goes on without the token.
    Forwarded(Response<Body>),
}

/// Why a request is not answered, in a sentence for whoever asked.
pub(super) struct Refusal(pub(super) StatusCode, pub(super) &'static str);

impl Refusal {
    /// The answer, after which the connection ends.
    pub(super) fn response(&self) -> Response<Body> {
        let mut response = Response::new(Body::from(format!("{}\n", self.1)));
        *response.status_mut() = self.0;
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
        headers.insert(CONNECTION, HeaderValue::from_static("close"));
        if self.0 == StatusCode::UNAUTHORIZED {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}

impl Rules {
    /// Judges a request by its head.
    ///
    /// # Errors
    ///
    /// Why it is refused.
    pub(super) fn judge(&self, head: &Parts, caller: Caller) -> Result<Entry, Refusal> {
        let host = self.host(head, caller)?;
        let shown = match &self.door {
            Door::Users(_) if caller.is_of_users => None,
            Door::Users(_) => {
                return Err(Refusal(
                    StatusCode::FORBIDDEN,
                    "These pages are for the user who started netsniff serve, and this connection cannot be told \
                     to be theirs. Started with --token, it serves whoever knows the token.",
                ));
            }
            Door::Token(token) => {
                if let Some(response) = self.forward(token, head) {
                    return Ok(Entry::Forwarded(response));
                }
                let missing = Refusal(
                    StatusCode::UNAUTHORIZED,
                    "These pages need their token: open the address that netsniff serve has printed, or send the \
                     token as `Authorization: Bearer TOKEN`.",
                );
                Some(token.in_headers(&head.headers).ok_or(missing)?)
            }
        };
        is_asked_by_own_page(head, &host, shown)?;
        Ok(Entry::Admitted)
    }

    /// The host that a request names, if it is this one. A page of somebody else's whose name was made to lead here still
    /// has that name.
    fn host(&self, head: &Parts, caller: Caller) -> Result<String, Refusal> {
        const MALFORMED: Refusal =
            Refusal(StatusCode::BAD_REQUEST, "This request does not name one host.");
        let mut hosts = head.headers.get_all(HOST).iter();
        let (Some(host), None) = (hosts.next(), hosts.next()) else { return Err(MALFORMED) };
        let host = host.to_str().map_err(|_| MALFORMED)?.to_ascii_lowercase();
        let authority: Authority = host.parse().map_err(|_| MALFORMED)?;
        if head.uri.authority().is_some() || host.contains('@') {
            return Err(MALFORMED);
        }
        if !self.is_own_name(authority.host(), caller.local.ip().to_canonical()) {
            return Err(Refusal(
                StatusCode::MISDIRECTED_REQUEST,
                "This host is asked for by a name that it does not know. Start netsniff serve with --name NAME, or \
                 use its address.",
            ));
        }
        Ok(host)
    }

    fn is_own_name(&self, name: &str, local: IpAddr) -> bool {
        let name = name.trim_start_matches('[').trim_end_matches(']').trim_end_matches('.');
        let known = |known: &String| known == name;
        match name.parse::<IpAddr>().map(|address| address.to_canonical()) {
            Ok(address) => {
                let is_loopback = address.is_loopback() && local.is_loopback();
                address == local || is_loopback || self.names.contains(&address.to_string())
            }
            Err(_) => name == "localhost" && local.is_loopback() || self.names.iter().any(known),
        }
    }

    /// The answer to an address with the token in it.
    fn forward(&self, token: &Token, head: &Parts) -> Option<Response<Body>> {
        let rest = token.in_query(head.uri.query()?)?;
        if head.method != Method::GET {
            return None;
        }
        // An address that begins with two slashes would lead to another host.
        let path = head.uri.path().trim_start_matches(['/', '\\']);
        let question = if rest.is_empty() { "" } else { "?" };
        let place = HeaderValue::from_str(&format!("/{path}{question}{rest}")).ok()?;
        let cookie = HeaderValue::from_str(&token.set_cookie(self.has_tls)).ok()?;
        let mut response = Response::new(Body::empty());
        *response.status_mut() = StatusCode::SEE_OTHER;
        response.headers_mut().insert(LOCATION, place);
        response.headers_mut().insert(SET_COOKIE, cookie);
        Some(response)
    }
}

/// Refuses what a page of another site made a browser ask. Others may link here, and no more.
fn is_asked_by_own_page(head: &Parts, host: &str, shown: Option<Shown>) -> Result<(), Refusal> {
    const FOREIGN: Refusal =
        Refusal(StatusCode::FORBIDDEN, "A page of another site made the browser ask for this.");
    let text = |name: HeaderName| head.headers.get(name).map(|value| value.to_str().unwrap_or(""));
    let only_reads = head.method == Method::GET || head.method == Method::HEAD;
    let site = text(FETCH_SITE);
    let is_link =
        only_reads && text(FETCH_MODE) == Some("navigate") && text(FETCH_DEST) == Some("document");
    if site.is_some_and(|site| !["same-origin", "none"].contains(&site)) && !is_link {
        return Err(FOREIGN);
    }
    if only_reads {
        return Ok(());
    }
    match origin(&head.headers) {
        Some(origin) if origin != host => Err(FOREIGN),
        // A browser tells one of both. Who shows a header that no browser sends by itself, or is no browser, needs neither.
        None if site.is_none() && shown == Some(Shown::Cookie) => Err(FOREIGN),
        _ => Ok(()),
    }
}

/// Host and port of the page that made a browser ask; nothing sensible where the browser hides it.
fn origin(headers: &HeaderMap) -> Option<String> {
    let origin = headers.get(ORIGIN)?.to_str().unwrap_or("").to_ascii_lowercase();
    let bare = origin.split_once("://").map(|(_, host)| host.to_owned());
    Some(bare.unwrap_or_default())
}
