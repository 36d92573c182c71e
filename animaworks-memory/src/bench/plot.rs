//! Recall against tokens, drawn.

use super::{
    report::{PRODUCT, Report},
    score::{ALL, BUDGETS, Metrics},
};

/// The words of a drawing.
#[derive(Debug, Clone)]
pub struct Labels {
    /// Of the axis of tokens.
    pub tokens: String,
    /// Of the axis of recall.
    pub recall: String,
}

const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 420.0;
/// Room for the axes on the left and below, and for names on the right.
const LEFT: f64 = 60.0;
const BELOW: f64 = 50.0;
const RIGHT: f64 = 180.0;
const ABOVE: f64 = 40.0;
const COLOURS: [&str; 8] = ["#0969da", "#8250df", "#bf3989", "#bc4c00", "#9a6700", "#1a7f37", "#57606a", "#cf222e"];

/// One drawing per data set, one below the other, as SVG.
pub fn svg(report: &Report, labels: &Labels) -> String {
    let sets: Vec<&String> = report.peers.keys().collect();
    let height = HEIGHT * sets.len().max(1) as f64;
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" font-family=\"sans-serif\" \
         font-size=\"12\">\n<rect width=\"{WIDTH}\" height=\"{height}\" fill=\"#ffffff\"/>\n"
    );
    for (at, set) in sets.into_iter().enumerate() {
        text.push_str(&format!("<g transform=\"translate(0 {})\">\n", HEIGHT * at as f64));
        drawing(&mut text, report, set, labels);
        text.push_str("</g>\n");
    }
    text.push_str("</svg>\n");
    text
}

fn drawing(text: &mut String, report: &Report, set: &str, labels: &Labels) {
    text.push_str(&format!("<text x=\"{LEFT}\" y=\"24\" font-size=\"15\">{}</text>\n", escaped(set)));
    for step in 0..=5 {
        let share = f64::from(step) / 5.0;
        let y = y(share);
        text.push_str(&format!(
            "<line x1=\"{LEFT}\" x2=\"{}\" y1=\"{y:.1}\" y2=\"{y:.1}\" stroke=\"#d0d7de\"/>\
             <text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{share:.1}</text>\n",
            WIDTH - RIGHT,
            LEFT - 8.0,
            y + 4.0
        ));
    }
    for budget in BUDGETS {
        text.push_str(&format!(
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{budget}</text>\n",
            x(budget),
            HEIGHT - BELOW + 18.0
        ));
    }
    text.push_str(&format!(
        "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>\n<text transform=\"translate(16 {:.1}) \
         rotate(-90)\" text-anchor=\"middle\">{}</text>\n",
        x(1000),
        HEIGHT - 12.0,
        escaped(&labels.tokens),
        y(0.5),
        escaped(&labels.recall)
    ));
    let mut lines: Vec<(&str, &Metrics)> = report
        .peers
        .get(set)
        .into_iter()
        .flatten()
        .filter_map(|(name, peer)| Some((name.as_str(), peer.metrics.get(ALL)?)))
        .collect();
    lines.extend(report.metrics.get(set).and_then(|metrics| Some((PRODUCT, metrics.get(ALL)?))));
    let at_end = |metrics: &Metrics| metrics.get("recall@700t").copied().unwrap_or_default();
    lines.sort_by(|a, b| at_end(b.1).total_cmp(&at_end(a.1)).then(a.0.cmp(b.0)));
    for (at, (name, metrics)) in lines.iter().enumerate() {
        let colour = COLOURS.get(at % COLOURS.len()).copied().unwrap_or("#000000");
        let (width, dashes) = match (*name == PRODUCT, at >= COLOURS.len()) {
            (true, _) => (3.5, ""),
            (false, false) => (1.5, ""),
            (false, true) => (1.5, " stroke-dasharray=\"4 3\""),
        };
        let points: Vec<String> = BUDGETS
            .iter()
            .filter_map(|budget| {
                let recall = metrics.get(&format!("recall@{budget}t"))?;
                Some(format!("{:.1},{:.1}", x(*budget), y(*recall)))
            })
            .collect();
        let legend = ABOVE + 16.0 * at as f64;
        text.push_str(&format!(
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"{width}\"{dashes}/>\n\
             <line x1=\"{x1}\" x2=\"{x2}\" y1=\"{legend}\" y2=\"{legend}\" stroke=\"{colour}\" \
             stroke-width=\"{width}\"{dashes}/><text x=\"{}\" y=\"{}\">{}</text>\n",
            points.join(" "),
            WIDTH - RIGHT + 38.0,
            legend + 4.0,
            escaped(name),
            x1 = WIDTH - RIGHT + 12.0,
            x2 = WIDTH - RIGHT + 32.0,
        ));
    }
}

fn x(budget: u32) -> f64 {
    let last = BUDGETS.last().copied().unwrap_or(1);
    LEFT + (WIDTH - LEFT - RIGHT) * f64::from(budget) / f64::from(last)
}

fn y(share: f64) -> f64 {
    HEIGHT - BELOW - (HEIGHT - BELOW - ABOVE) * share
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
