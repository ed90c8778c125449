//! What browsers are told with each answer, be it a page or a refusal.

use axum::http::{HeaderMap, HeaderName, HeaderValue};

/// Names with values. A page needs nothing but files of its own host, and is part of no other page.
const HEADERS: [(&str, &str); 7] = [
    (
        "content-security-policy",
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
         form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    ),
    ("x-content-type-options", "nosniff"),
    // With none at all, forms of these pages would come from nowhere (Fetch, 3.2: `Origin: null`).
    ("referrer-policy", "same-origin"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    (
        "permissions-policy",
        "camera=(), display-capture=(), geolocation=(), microphone=(), payment=(), usb=()",
    ),
    // What traffic has told stays in no cache, neither on disk nor in a proxy.
    ("cache-control", "no-store"),
];

/// Sets all of them, over what a page has set.
pub(super) fn set(headers: &mut HeaderMap) {
    for (name, value) in HEADERS {
        headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
}
