//! What each sign says. Written by `animaworks bench memory learn`; not to be edited.
//!
//! Learned from locomo.dev, fd10091ee66b0decd5a6a022be0a2176f163d14670ddde4582c04c10c1d7c9ee.
//! Learned from animem.dev, 9108a560d359feb4ceb8e1d3f7295c364221bcb5843bbd5442489cef79ae9683.
//! Learned from jsquad.dev, 2456dc758c5321fd2a932ac8004ca512528b5700f3d93c4698bfcf21c3b7afce.
//! Learned from jaquad.dev, 3343aba6d793a2ef71b189c4516d4ea6bebf49c7f6394283b298d50ad22e9f2a.

#![allow(clippy::unreadable_literal, reason = "written by a program")]

use super::features::COUNT;

/// With a model of meaning: what is subtracted.
pub(crate) const MEANING_USUAL: f32 = 4.63987;
/// With a model of meaning: what each feature adds.
pub(crate) const MEANING: [f32; COUNT] = [
    0.0031439154,   // words
    0.46458417,     // words-2
    -0.51040477,    // words-1
    0.009893827,    // words+1
    -0.12948254,    // words+2
    0.5366476,      // words max
    -0.11769188,    // words mean
    0.0771856,      // words rank
    2.1557572,      // words whole
    0.23413865,     // meaning
    0.09245974,     // meaning-2
    0.043547634,    // meaning-1
    -0.046212472,   // meaning+1
    0.05884728,     // meaning+2
    0.8240097,      // meaning max
    0.05503133,     // meaning mean
    -0.20241295,    // meaning rank
    0.12757075,     // meaning behind
    2.3424406,      // covers
    0.04968924,     // covers-2
    -1.1271764,     // covers-1
    0.38159195,     // covers+1
    -0.19355738,    // covers+2
    0.41696158,     // covers max
    -3.045217,      // covers mean
    0.58930105,     // covers with 1
    1.9484997,      // covers with 2
    1.0834346,      // exact
    0.48871338,     // exact-1
    -0.5024462,     // exact+1
    0.5820004,      // exact max
    0.80853903,     // speaker
    0.31660894,     // length
    -0.763454,      // asks
    0.353122,       // after asking
    1.5810499,      // words after asking
    0.26888433,     // meaning after asking
    0.21004039,     // number
    0.46821472,     // dated
    0.36174428,     // first
    1.5397518,      // dated when
    0.20837462,     // number many
    0.19148754,     // asks when
    0.0,            // important
    -1.9897308,     // words known
    -0.4630005,     // meaning known
    -0.85582465,    // covers known
    -1.1481873,     // meaning speaker
    1.3880781,      // words speaker
    0.27761212,     // words meaning
    0.031136286,    // meaning length
    -0.21705262,    // names
    0.6082634,      // names meaning
    -1.2452866,     // names words
    -0.14462872,    // names unknown
    -0.67116606,    // names-1
    -2.9179118e-16, // page
    1.9773215,      // page words
    0.11668796,     // page meaning
    2.9741523,      // page covers
    2.9741523,      // page exact
    -0.06615086,    // page rank
    3.4486482,      // day
    -1.3050351,     // day-1
    -4.595746,      // whole known
    0.52925605,     // by hand
];

/// Words alone: what is subtracted.
pub(crate) const WORDS_USUAL: f32 = 3.5619082;
/// Words alone: what each feature adds.
pub(crate) const WORDS: [f32; COUNT] = [
    0.83839047,   // words
    0.7748277,    // words-2
    -0.6602064,   // words-1
    -0.011722591, // words+1
    -0.034292813, // words+2
    1.2828794,    // words max
    0.22256927,   // words mean
    0.17001659,   // words rank
    5.945359,     // words whole
    0.0,          // meaning
    0.0,          // meaning-2
    0.0,          // meaning-1
    0.0,          // meaning+1
    0.0,          // meaning+2
    0.0,          // meaning max
    0.0,          // meaning mean
    0.0,          // meaning rank
    0.0,          // meaning behind
    3.0645525,    // covers
    0.59317505,   // covers-2
    -0.84791654,  // covers-1
    0.8513118,    // covers+1
    0.1771034,    // covers+2
    0.25991094,   // covers max
    -3.291727,    // covers mean
    0.44686136,   // covers with 1
    1.6806281,    // covers with 2
    1.1672423,    // exact
    0.9745008,    // exact-1
    -0.66780925,  // exact+1
    0.4245124,    // exact max
    -2.302495,    // speaker
    0.22072728,   // length
    -0.61986274,  // asks
    0.44165245,   // after asking
    2.240927,     // words after asking
    0.0,          // meaning after asking
    0.18516341,   // number
    0.4504353,    // dated
    0.08507173,   // first
    1.6549727,    // dated when
    0.34254405,   // number many
    0.19135699,   // asks when
    0.0,          // important
    -2.402865,    // words known
    0.0,          // meaning known
    -2.0844889,   // covers known
    0.0,          // meaning speaker
    1.4210685,    // words speaker
    0.0,          // words meaning
    0.0,          // meaning length
    1.576481,     // names
    0.0,          // names meaning
    -0.24455006,  // names words
    1.6987418,    // names unknown
    -0.6726814,   // names-1
    4.450923e-16, // page
    4.168905,     // page words
    0.0,          // page meaning
    3.2157536,    // page covers
    3.2157836,    // page exact
    0.0,          // page rank
    2.9007962,    // day
    -1.5231006,   // day-1
    -5.7182875,   // whole known
    0.43148765,   // by hand
];
