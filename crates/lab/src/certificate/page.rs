//! The certificate for people: one page with all that the statement says, and with the signed envelope itself.
//!
//! People do not read the envelope, and a page is text that anybody can change. So all that a page says follows from the
//! statement and its envelope: who verifies it writes the page again, and takes none that differs in a byte.

use serde::Serialize;

use super::Statement;
use super::envelope::{Envelope, EnvelopeError};
use super::facts::{Capture, Configuration};
use super::key::PublicKey;
use crate::report::{Part, Report, Section, blocks, sections};
use crate::tools::Tool;

/// How a page begins, and an envelope does not.
const BEGIN: char = '<';

/// How to look at the signature without netsniff.
const BY_OTHERS: &str = r#"jq -r .payload certificate.json | base64 -d > statement.json
jq -r '.signatures[0].sig' certificate.json | base64 -d > signature
type=$(jq -r .payloadType certificate.json)
(printf 'DSSEv1 %d %s %d ' ${#type} "$type" $(wc -c < statement.json); cat statement.json) > signed
openssl pkeyutl -verify -pubin -inkey key.pub.pem -rawin -in signed -sigfile signature
"#;

/// Whether a page says what was signed, and nothing else.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Wording {
    /// It is the one page that the statement gives.
    AsSigned,
    /// Another version of netsniff wrote it, perhaps in other words: only the statement in it is verified.
    OfAnotherVersion,
    /// It is another one than the statement gives.
    Altered,
}

/// Whether a file is a page, and not an envelope alone.
#[must_use]
pub fn is_page(text: &str) -> bool {
    text.trim_start().starts_with(BEGIN)
}

/// The envelope in a page.
///
/// # Errors
///
/// Where there is none.
pub fn envelope(page: &str) -> Result<String, EnvelopeError> {
    let found = blocks(page).find(|text| Envelope::parse(text).is_ok());
    found.ok_or_else(|| EnvelopeError::Form("there is no envelope in the page".to_owned()))
}

/// Whether a page is the one that the statement in its envelope gives, for this version of netsniff.
#[must_use]
pub fn wording(page: &str, statement: &Statement, envelope: &str, version: &str) -> Wording {
    if statement.configuration.netsniff != version {
        return Wording::OfAnotherVersion;
    }
    match report(statement, envelope).html() == page {
        true => Wording::AsSigned,
        false => Wording::Altered,
    }
}

/// The page of a statement, as it is in the envelope: a number that was not read from there may have other digits.
#[must_use]
pub fn report(statement: &Statement, envelope: &str) -> Report {
    let tool = &statement.configuration.tool.name;
    let all = statement.sizes.len();
    let certified = statement.sizes.iter().filter(|size| size.rate().is_some()).count();
    let lead = vec![
        format!(
            "The highest rates at which {tool} captures all frames that are sent, on one machine with its settings, as they \
             were measured there and signed at {}. {certified} of {all} sizes of frames have one.",
            statement.made
        ),
        "The signature is of the statement at the end of this page. Whether all that stands here is what was signed, nobody \
         sees by looking: netsniff lab certify --verify tells."
            .to_owned(),
    ];
    let envelope = Section {
        title: "The signed statement".to_owned(),
        parts: vec![
            Part::Text("The same as certificate.json: an envelope of DSSE 1.0, with the statement in base64.".to_owned()),
            Part::Code(envelope.to_owned()),
        ],
    };
    let of_statement = super::sections::of(statement);
    Report {
        title: "Certificate: capture without loss".to_owned(),
        lead,
        facts: facts(statement),
        sections: of_statement.into_iter().chain([how_to_verify(statement), envelope]).collect(),
    }
}

fn fingerprint(statement: &Statement) -> String {
    let key = PublicKey::of_pem(&statement.public_key);
    key.and_then(|key| key.fingerprint()).unwrap_or_else(|said| said)
}

fn facts(statement: &Statement) -> Vec<(String, String)> {
    let configuration = &statement.configuration;
    let first = [
        ("measured", statement.made.clone()),
        ("signed with the key", fingerprint(statement)),
        ("capture", configuration.tool.name.clone()),
        ("netsniff", configuration.netsniff.clone()),
    ];
    let of_machine = sections::facts(
        &configuration.tool.command,
        &configuration.machine,
        Some(&configuration.testbed),
    );
    let of_sender = configuration.sender.iter().flat_map(sections::sender);
    let first = first.into_iter().map(|(name, value)| (name.to_owned(), value));
    first.chain(of_machine).chain(of_sender).collect()
}

fn how_to_verify(statement: &Statement) -> Section {
    let text = |text: &str| Part::Text(text.to_owned());
    let mut parts = vec![
        text(
            "This makes the page again from the signed statement, and refuses one that differs in a byte. Then it compares \
             the machine that it runs on, and tries the rates there, which needs root; with --no-check it does not.",
        ),
        Part::Code(
            "netsniff lab certify --verify certificate.html --public key.pub.pem\n".to_owned(),
        ),
    ];
    let Configuration { tool, testbed, .. } = &statement.configuration;
    if testbed.wire.is_some() {
        parts.push(text(
            "Another machine sent the frames. No address of a certificate is connected to: which machine is to send now, and \
             where its wire ends, has to be given.",
        ));
        parts.push(Part::Code(
            "netsniff lab certify --verify certificate.html --public key.pub.pem --sender ssh://HOST --sender-interface \
             IFACE -i IFACE\n"
                .to_owned(),
        ));
    }
    if testbed.files.is_some() {
        parts.push(text(
            "Capture files were on a file system, and not in memory: --files gives a directory on the same one.",
        ));
    }
    if !Tool::all().iter().any(|known| Capture::of(known) == *tool) {
        parts.push(text(
            "The capture is a command that the user gave, or has options that the user gave. No command of a certificate is \
             run: they have to be given again, with --command and --set, so that it is this one:",
        ));
        parts.push(Part::Code(tool.command.join(" ") + "\n"));
    }
    parts.extend([
        Part::Text(format!(
            "key.pub.pem is the public key of who signed this. It has to come from elsewhere: in this page anybody can put \
             one. Its fingerprint, as openssl pkey -pubin -in key.pub.pem -outform DER | sha256sum tells it, is {}.",
            fingerprint(statement)
        )),
        text("The signature can be verified without netsniff, too; but not that the rest of this page says the same:"),
        Part::Code(BY_OTHERS.to_owned()),
    ]);
    Section { title: "How to verify it".to_owned(), parts }
}

#[cfg(test)]
mod tests {
    use super::super::key::PrivateKey;
    use super::super::key::tests::{PRIVATE, PUBLIC};
    use super::super::tests::statement;
    use super::*;
    use crate::certificate::{Certified, Repeated};
    use crate::search::{HighestRate, Purpose};
    use crate::trial::Fault;

    const VERSION: &str = "0.1.0";

    fn certificate(change: impl Fn(&mut Statement)) -> String {
        let mut statement = statement();
        statement.sizes = vec![
            Certified {
                found: HighestRate::Rate(412_345.6),
                not_certified: None,
                sent: 12_370_368,
                captured: 12_370_368,
                loss_below: Some(3.0 / 12_370_368.0),
                confirmations: 3,
                runs: 11,
                repeated: vec![Repeated {
                    purpose: Purpose::Steer,
                    asked: Some(500_000.0),
                    reached: None,
                    sent: 77,
                    captured: None,
                    faults: vec![Fault::Wire],
                    counts_at_reached: false,
                    failure: Some("what the tool said".to_owned()),
                }],
                ..Certified::unavailable(64, "")
            },
            Certified {
                found: HighestRate::AtLeast(81_274.1),
                not_certified: None,
                ..Certified::unavailable(1518, "")
            },
            Certified {
                found: HighestRate::Below(250.0),
                ..Certified::unavailable(512, "something was lost")
            },
        ];
        change(&mut statement);
        statement.sign(&PrivateKey::of_pem(PRIVATE).unwrap()).unwrap()
    }

    fn page(certificate: &str) -> String {
        let (statement, _) = Statement::verified(certificate, None).unwrap();
        report(&statement, certificate).html()
    }

    /// As who verifies a page does.
    fn verified(page: &str) -> Result<Wording, EnvelopeError> {
        let envelope = envelope(page)?;
        let key = PublicKey::of_pem(PUBLIC).unwrap();
        let (statement, _) = Statement::verified(&envelope, Some(&key))?;
        Ok(wording(page, &statement, &envelope, VERSION))
    }

    #[test]
    fn a_page_says_what_was_signed() {
        let certificate = certificate(|_| {});
        let page = page(&certificate);
        assert!(is_page(&page) && !is_page(&certificate));
        assert_eq!(envelope(&page).as_ref(), Ok(&certificate));
        assert_eq!(verified(&page), Ok(Wording::AsSigned));
        for text in [
            "what the tool said",
            "<td class=\"number\">412,346</td><td>highest found</td>",
            "<td class=\"number\">81,274</td><td>at least</td>",
            "<td class=\"number\">12,370,368</td><td class=\"number\">12,370,368</td>",
            "2.4e-7 (95 %)",
            "something was lost: 250 frames/s",
            "frames were lost on the way, or others came",
            "Not drawn: values that are unknown (1).",
            "<pre>netsniff lab certify --verify certificate.html --public key.pub.pem\n</pre>",
            "<dd>786cd67be18cffc702fad3ed0146581a4e190ef4f3e7e34f38eccc8f7c10ea72</dd>",
            "2026-01-02T03:04:05Z",
            "net.core.netdev_max_backlog",
        ] {
            assert!(page.contains(text), "{text} is not in {page}");
        }
        assert!(!page.contains("have to be given again") && !page.contains("<script"));
    }

    #[test]
    fn a_page_that_was_changed_anywhere_is_refused() {
        let page = page(&certificate(|_| {}));
        let faster = page.replacen(">412,346<", ">912,346<", 1);
        assert_ne!(faster, page);
        assert_eq!(verified(&faster), Ok(Wording::Altered));
        // The envelope has a signature of its own.
        let begin = page.find("<pre>{\n").unwrap() + 5;
        let end = begin + page[begin..].find("</pre>").unwrap();
        let mut altered = 0;
        // Steps that meet all parts of it, and each bit.
        for (bit, at) in (0..begin).chain(end..page.len()).step_by(31).enumerate() {
            let mut changed = page.clone().into_bytes();
            changed[at] ^= 1 << (bit % 7);
            let Ok(changed) = String::from_utf8(changed) else { continue };
            // The marks around the envelope are the page's, too.
            let is_refused = matches!(verified(&changed), Ok(Wording::Altered) | Err(_));
            assert!(is_refused, "{at}");
            altered += 1;
        }
        assert!(altered > 400, "{altered}");
        let longer = page.replace("</body>", "<p>and more</p></body>");
        assert_eq!(verified(&longer), Ok(Wording::Altered));
        let cut = page.replace("</body>\n</html>\n", "");
        assert_eq!(verified(&cut), Ok(Wording::Altered));
    }

    #[test]
    fn a_page_with_another_envelope_or_none_is_refused() {
        let whole = page(&certificate(|_| {}));
        let at = whole.find("&quot;payload&quot;: &quot;").unwrap() + 80;
        let other = if &whole[at..=at] == "A" { "B" } else { "A" };
        let changed = [&whole[..at], other, &whole[at + 1..]].concat();
        assert_eq!(verified(&changed), Err(EnvelopeError::Signature));
        let none = whole.replace("&quot;payload&quot;", "&quot;load&quot;");
        let said = verified(&none).unwrap_err().to_string();
        assert_eq!(said, "it is no certificate: there is no envelope in the page");
        assert!(verified("<html></html>").is_err() && verified("<pre>{}").is_err());
        // Two valid certificates: the page is of the first one.
        let slower = certificate(|it| it.sizes.truncate(1));
        let stolen = whole.replace(&blocked(&certificate(|_| {})), &blocked(&slower));
        assert_ne!(stolen, whole);
        assert_eq!(verified(&stolen), Ok(Wording::Altered));
        // What was written in other words is not what they are compared with.
        let old = page(&certificate(|it| it.configuration.netsniff = "0.0.9".to_owned()));
        let faster = old.replacen(">412,346<", ">912,346<", 1);
        assert_eq!(verified(&faster), Ok(Wording::OfAnotherVersion));
    }

    fn blocked(envelope: &str) -> String {
        envelope.replace('"', "&quot;")
    }

    /// A certificate may be from anybody.
    #[test]
    fn names_and_numbers_of_others_are_text() {
        let evil = "<img src=x>\u{1b}[2J</pre><pre>{}".to_owned();
        let numbers = [f64::MAX, -f64::MAX, 0.0, f64::MIN_POSITIVE];
        let certificate = certificate(|it| {
            it.made.clone_from(&evil);
            it.configuration.tool.name.clone_from(&evil);
            it.configuration.tool.command = vec![evil.clone()];
            it.configuration.machine.sysctls = vec![(evil.clone(), evil.clone())];
            it.sizes[2].not_certified = Some(evil.clone());
            for rate in numbers.into_iter().cycle().take(60) {
                let found = HighestRate::AtLeast(rate);
                let size = Certified::unavailable(u32::MAX, "");
                it.sizes.push(Certified { found, not_certified: None, ..size });
            }
        });
        let page = page(&certificate);
        assert!(!page.contains("<img") && !page.contains('\u{1b}'), "{page}");
        assert_eq!(verified(&page), Ok(Wording::AsSigned));
        assert!(page.contains("more sizes, which the table has (21)"), "{page}");
        assert!(page.contains("have to be given again"));
    }
}
