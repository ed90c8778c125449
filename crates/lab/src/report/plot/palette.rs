//! Colours and letters.

use plotters::style::{FontDesc, FontFamily, FontStyle, RGBColor, TextStyle};

/// The colours of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Palette {
    /// Dark text on a light ground.
    Light,
    /// Light text on a dark ground.
    Dark,
}

/// The backend divides sizes by this, so that letters of 12 pixels are asked for as 14.88.
const PER_PIXEL: f64 = 1.24;

impl Palette {
    /// Both, with the names that files of them have.
    pub const ALL: [(Self, &'static str); 2] = [(Self::Light, "light"), (Self::Dark, "dark")];

    pub(super) const fn text(self) -> &'static RGBColor {
        match self {
            Self::Light => &RGBColor(0x1c, 0x1f, 0x23),
            Self::Dark => &RGBColor(0xe6, 0xe9, 0xec),
        }
    }

    pub(super) const fn page(self) -> RGBColor {
        match self {
            Self::Light => RGBColor(0xff, 0xff, 0xff),
            Self::Dark => RGBColor(0x14, 0x17, 0x1a),
        }
    }

    pub(super) const fn faint(self) -> RGBColor {
        match self {
            Self::Light => RGBColor(0xd5, 0xda, 0xe0),
            Self::Dark => RGBColor(0x36, 0x3d, 0x45),
        }
    }

    /// Colours that readers tell apart who do not see all of them (after Okabe and Ito).
    pub(super) const fn series(self, number: usize) -> RGBColor {
        const LIGHT: [RGBColor; 7] = [
            RGBColor(0x00, 0x72, 0xb2),
            RGBColor(0xd5, 0x5e, 0x00),
            RGBColor(0x00, 0x85, 0x63),
            RGBColor(0xb0, 0x4f, 0x8a),
            RGBColor(0x9a, 0x6b, 0x00),
            RGBColor(0x3a, 0x8f, 0xc4),
            RGBColor(0x44, 0x4a, 0x50),
        ];
        const DARK: [RGBColor; 7] = [
            RGBColor(0x56, 0xb4, 0xe9),
            RGBColor(0xf0, 0x8a, 0x3c),
            RGBColor(0x2e, 0xc4, 0xa0),
            RGBColor(0xe0, 0x94, 0xc0),
            RGBColor(0xf0, 0xe4, 0x42),
            RGBColor(0x8c, 0xa8, 0xff),
            RGBColor(0xb8, 0xc0, 0xc8),
        ];
        match self {
            Self::Light => LIGHT[number % LIGHT.len()],
            Self::Dark => DARK[number % DARK.len()],
        }
    }

    /// Letters of so many pixels.
    pub(super) fn font(self, pixels: f64) -> TextStyle<'static> {
        let font = FontDesc::new(FontFamily::SansSerif, pixels * PER_PIXEL, FontStyle::Normal);
        TextStyle::from(font).color(self.text())
    }

    /// Bold letters of so many pixels.
    pub(super) fn bold(self, pixels: f64) -> TextStyle<'static> {
        let font = FontDesc::new(FontFamily::SansSerif, pixels * PER_PIXEL, FontStyle::Bold);
        TextStyle::from(font).color(self.text())
    }
}
