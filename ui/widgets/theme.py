"""The pages' CSS.

A model's colour marks its card's edge and always appears beside its name.
"""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from engine.palette import NEUTRAL, TONES

ICON = Path(__file__).resolve().parents[1] / "icon.png"
LOGO = ICON.with_name("logo.svg")
_STYLE = """
/* Four sizes: charts, details, text, titles.  One muted colour, at least 4.5:1 on every ground. */
.stApp { --tiny: 0.75rem; --small: 0.875rem; --text: 1rem; --title: 1.25rem;
  --muted: light-dark(#4F5967, #B4BCC7); --focus: light-dark(#1F5F8B, #7FBFE8); }
[data-testid="stCaptionContainer"] { opacity: 1; color: var(--muted); }
.stVegaLiteChart svg text { fill: var(--muted); }
.stApp kbd { opacity: 1 !important; }
.stApp button:disabled, .stApp button:disabled :is(p, kbd) { color: var(--muted); }
.stApp [data-stale="true"] { opacity: 0.93 !important; }
.stApp :is([data-variant="segmented_control"], [data-variant="pills"])[data-selected] {
  color: var(--focus); }
.stApp :is(a, button, summary, [role="radio"], [role="tab"]):focus-visible {
  outline: 2px solid var(--focus) !important; outline-offset: 2px; }
[data-testid="stTopNav"] a:focus-visible { outline-offset: -2px !important; }
/* What is read aloud, and not shown. */
[class*="st-key-spoken"] { position: absolute; width: 1px; height: 1px; overflow: hidden;
  clip-path: inset(50%); }
.stApp [data-testid="stSliderThumbValue"], .stApp [data-testid="stSliderThumbValue"] * {
  color: var(--focus); }
.stApp h1 { padding: 0 0 0.3rem; }
/* A word stays whole in a cell: the table scrolls. */
[data-testid="stTable"] { overflow-x: auto; }
[data-testid="stTable"] :is(th, td) { white-space: nowrap; font-variant-numeric: tabular-nums; }
[data-testid="stTable"] td, [data-testid="stTable"] thead th { text-align: right; }
[class*="st-key-worded"] [data-testid="stTable"] :is(td, th) { text-align: left; }
.stMainBlockContainer { padding: 4rem 2.5rem 3rem; max-width: 1800px; }
[data-testid="stSidebarHeader"] { height: 3.4rem; margin-bottom: 0; }
/* Streamlit's "Stop" would stop the drawing, not the runs; Cancel stops the runs. */
[data-testid="stStatusWidget"] { display: none; }
[class*="st-key-small"] [data-testid="stText"] { font-size: var(--small); color: var(--muted); }
[class*="st-key-small_subject"] [data-testid="stText"] { max-height: 7em; overflow: auto; }
[class*="st-key-seen"] { min-height: 11rem; }
[class*="st-key-small_seen"] { min-height: 2.6rem; }
[class*="st-key-problem"], [class*="st-key-notice"] { border-left: 4px solid #C9820A;
  background: #C9820A14; padding: 0.5rem 0.75rem; border-radius: 0.25rem; }
[class*="st-key-problem"] { border-left-color: #C8453B; background: #C8453B14; }
[class*="st-key-problem"] [data-testid="stText"], [class*="st-key-notice"] [data-testid="stText"] {
  font-size: var(--small); overflow-wrap: anywhere; }
[class*="st-key-claim_"] { border-left: 4px solid #C9820A; padding-left: 0.6rem; }
[class*="st-key-claim_supported"] { border-left-color: #11805A; }
[class*="st-key-claim_not"] { border-left-color: #C8453B; }
[class*="st-key-hint"] { padding: 1.2rem 1.4rem; max-width: 44rem; }
[class*="st-key-answer_"] [data-testid="stText"], [class*="st-key-stream_"] [data-testid="stText"] {
  line-height: 1.55; overflow-wrap: anywhere; }
[class*="st-key-card"] [data-testid="stCode"] code { font-size: var(--small); }
[class*="st-key-features_table"] { max-width: 46rem; }
[class*="st-key-features_table"] [data-testid="stText"] { font-size: var(--small); }
[class*="st-key-features_table"] button { min-height: 1.8rem; padding: 0 0.7rem; }
.st-key-compare_gallery_row { flex-wrap: nowrap; gap: 0.3rem; }
.st-key-compare_gallery_row > * { width: auto; flex: 1 0 auto; }
.st-key-compare_gallery_row > * .stElementContainer { width: 100%; }
.st-key-compare_gallery_row button { min-height: 2rem; padding: 0 0.25rem; width: 100%; }
.st-key-compare_gallery_row button * { font-size: var(--small); }
.st-key-compare_gallery_row button span { column-gap: 0.3rem; }
.st-key-gallery_grid { display: grid; grid-template-columns: repeat(auto-fill,
  minmax(min(10rem, 45%), 1fr)); }
.st-key-gallery_grid > * { width: 100% !important; min-width: 0; }
[class*="st-key-gallery_picture"] { height: 7rem; overflow: hidden; border-radius: 0.4rem;
  background: #868D971A; }
[class*="st-key-gallery_picture"] img { height: 7rem; width: 100%; object-fit: cover; }
.st-key-gallery_grid [data-testid="stElementToolbar"] { display: none; }
/* A click on the picture is a click on the button below it. */
[class*="st-key-gallery_cell"] { position: relative; }
[class*="st-key-compare_gallery_choose"], [class*="st-key-compare_gallery_choose"] * {
  position: static !important; }
[class*="st-key-compare_gallery_choose"] button { min-height: 2rem; padding: 0.1rem 0.3rem; }
[class*="st-key-compare_gallery_choose"] button p { font-size: var(--small);
  overflow-wrap: anywhere; }
[class*="st-key-compare_gallery_choose"] button::after { content: ""; position: absolute !important;
  inset: 0; cursor: pointer; }
[class*="st-key-card_"] h3 { padding: 0; overflow-wrap: anywhere; }
[class*="st-key-card_"] h3::before { content: ""; display: inline-block; width: 0.75rem;
  height: 0.75rem; margin-right: 0.45rem; border-radius: 0.15rem; background: var(--family); }
[class*="st-key-card_"] .stMarkdownBadge { white-space: normal !important; }
[class*="st-key-answer_"], [class*="st-key-stream_"] { max-height: 24rem; overflow-y: auto; }
/* From its end upwards: the end of a growing answer stays in view. */
.stVerticalBlock[class*="st-key-stream_"] { flex-direction: column-reverse;
  justify-content: flex-start; }
[class*="st-key-answer_"] > *, [class*="st-key-stream_"] > * { flex-shrink: 0; }
/* Only the copy button of the code block is shown: the answer stands above it. */
[class*="st-key-copy_"] pre { display: none; }
[class*="st-key-copy_"] .stCode, [class*="st-key-copy_"] .stCode * { position: static; opacity: 1;
  visibility: visible; width: auto; min-width: 0; padding: 0; box-shadow: none; }
[class*="st-key-copy_"] .stElementContainer { width: auto; }
[class*="st-key-copy_"] .stCode button { gap: 0.35rem; padding: 0 0.6rem;
  border: 1px solid #868D9777; color: inherit; }
[class*="st-key-copy_"] .stCode svg { width: 1rem; }
[class*="st-key-copy_"] button::after { content: "Copy"; font-size: var(--small); }
[class*="st-key-actions_"] button { min-height: 2rem; padding: 0 0.6rem; }
[class*="st-key-actions_"] button p { font-size: var(--small); }
[class*="st-key-figures_"] { container-type: inline-size; }
dl.card-figures { display: grid; grid-template-columns: repeat(6, auto);
  justify-content: space-between; text-align: right; gap: 0.15rem 0.5rem; margin: 0 !important;
  padding: 0 !important; position: relative;
  font-variant-numeric: tabular-nums; }
.card-figures dt, .card-figures dd { margin: 0; padding: 0; font-weight: 400; line-height: 1.3;
  white-space: nowrap; }
.card-figures dt { font-size: var(--small); color: var(--muted); }
.card-figures b { font-size: var(--text); font-weight: 600; }
.card-figures div:first-child b { font-weight: 800; }
.card-figures small { font-size: var(--small); }
.card-figures .card-range { font-size: var(--small); color: var(--muted); white-space: normal; }
.card-range span { white-space: nowrap; }
.card-figures div:hover::after, .card-figures div:focus::after { content: attr(data-help);
  position: absolute; left: 0; right: 0; top: 100%; z-index: 9; padding: 0.4rem 0.6rem;
  font-size: var(--small); line-height: 1.35; border: 1px solid #868D97; border-radius: 0.3rem;
  background: #1B2430; color: #FFFFFF; }
.card-note { margin: 0.25rem 0 0 !important; font-size: var(--small) !important;
  color: var(--muted); }
.card-formulas { font-size: var(--small); margin-top: 0.8rem; max-width: 34rem; }
/* In a narrow card the unit has its own line below the name. */
@container (max-width: 430px) {
  .card-figures dt { min-height: 2.6em; }
  .card-figures small { display: block; }
}
@container (max-width: 265px) {
  dl.card-figures { grid-template-columns: repeat(3, auto); justify-content: space-around; }
  .card-figures div:nth-child(n + 4) dt { min-height: 0; }
}
/* The list of models shows all its entries, with their whole names. */
.stSidebar [data-testid="stMultiSelect"] :is([role="group"],
  [data-testid="stMultiSelectTagsContainer"]) { max-height: none; height: auto; }
.stSidebar [data-testid="stMultiSelect"] [data-tag] { height: auto; min-height: 1.5rem;
  max-width: 100%; }
.stSidebar [data-testid="stMultiSelect"] [data-tag] > span { white-space: normal; max-width: none;
  line-height: 1.25; padding: 0.15rem 0; }
/* Rows of up to three cards, or of two in a narrow page; four cards are two rows of two.  The
   parts of a row's cards lie on common lines, so that figures and answers stand side by side. */
.st-key-compare_cards { container-type: inline-size; }
@media (min-width: 641px) {
  .st-key-compare_cards > * > .stHorizontalBlock { display: grid; row-gap: 0; --beside: 3;
    grid-template-columns: repeat(var(--beside), minmax(0, 1fr)); grid-auto-rows: auto; }
  .st-key-compare_cards > * > .stHorizontalBlock:not(:has(> :nth-child(3))),
  .st-key-compare_cards > * > .stHorizontalBlock:has(> :nth-child(4):last-child) { --beside: 2; }
  .st-key-compare_cards .stColumn, .st-key-compare_cards .stColumn > *,
  .st-key-compare_cards .stColumn > * > *, .st-key-compare_cards .stColumn [class*="st-key-card_"] {
    display: grid; grid-template: subgrid / minmax(0, 1fr); grid-row: 1 / -1; width: auto; gap: 0; }
  .st-key-compare_cards > * > .stHorizontalBlock > .stColumn { grid-row: span 8;
    margin-bottom: 1rem; }
  @container (max-width: 640px) {
    .st-key-compare_cards > * > .stHorizontalBlock { --beside: 2; } }
  .st-key-compare_cards [class*="st-key-card_"] > * { margin-bottom: 0.5rem; }
  [class*="st-key-card_"] > :has(> [class*="st-key-head_"]) { grid-row: 1; }
  [class*="st-key-card_"] > :has(> [class*="st-key-figures_"]) { grid-row: 2; }
  [class*="st-key-card_"] > :has(> [class*="st-key-trust_"]) { grid-row: 3; }
  [class*="st-key-card_"] > :has(> [class*="st-key-stream_"]) { grid-row: 4; }
  [class*="st-key-card_"] > :has(> [class*="st-key-answer_"]) { grid-row: 5; }
  [class*="st-key-card_"] > :has(> [class*="st-key-notes_"]) { grid-row: 6; }
  [class*="st-key-card_"] > :has(> [class*="st-key-actions_"]) { grid-row: 7; }
  [class*="st-key-card_"] > :has(> [class*="st-key-seen_"]) { grid-row: 8; }
}
dl.model-facts { display: grid; grid-template-columns: 7.2rem minmax(0, 1fr); gap: 0.22rem 0.7rem;
  margin: 0 !important; padding: 0; font-size: var(--small); line-height: 1.35; }
.model-facts dt { color: var(--muted); font-weight: 400; }
.model-facts dd { margin: 0; overflow-wrap: anywhere; font-variant-numeric: tabular-nums; }
.model-bar { display: flex; height: 0.9rem; overflow: hidden; border-radius: 0.25rem;
  background: #868D9722; border: 1px solid #868D9777; }
.model-bar span { min-width: 3px; }
.model-keys { display: flex; flex-wrap: wrap; gap: 0.2rem 1.2rem; margin-top: 0.35rem;
  font-size: var(--small); }
.model-key { min-width: 0; overflow-wrap: anywhere; }
.model-key b { font-weight: 600; font-variant-numeric: tabular-nums; }
.model-dot { display: inline-block; width: 0.7rem; height: 0.7rem; margin-right: 0.4rem;
  border-radius: 0.15rem; vertical-align: -0.05rem; background: #868D9722;
  border: 1px solid #868D9777; }
[class*="st-key-proof_table"] button p { font-weight: 600; text-align: left; }
[class*="st-key-proof_table"] [data-testid="stButton"] button { min-height: 1.8rem; padding: 0; }
.figures-wide { overflow-x: auto; margin: 0.2rem 0 0.8rem; }
.figures { border-collapse: collapse; font-size: var(--small); font-variant-numeric: tabular-nums; }
.figures caption { text-align: left; color: var(--muted); padding: 0 0 0.3rem; caption-side: top; }
.figures th, .figures td { padding: 0.22rem 0.7rem; border-bottom: 1px solid #868D9755;
  vertical-align: top; font-weight: 400; max-width: 34rem; white-space: nowrap; }
.figures thead th { font-weight: 600; background: #868D971A; }
.figures .figures-number { text-align: right; }
.figures .figures-word { text-align: left; white-space: normal; }
.figures .figures-word:first-child, .figures thead .figures-word { white-space: nowrap; }
.words-between { white-space: pre-wrap; overflow-wrap: anywhere; line-height: 1.7;
  border: 1px solid #868D9755; border-radius: 0.3rem; padding: 0.7rem 0.9rem; }
.words-between del { background: #C8453B26; text-decoration: line-through; }
.words-between ins { background: #11805A26; text-decoration: underline; }
.agreement th, .agreement td { white-space: nowrap; text-align: left; }
.agreement thead th { white-space: normal; min-width: 6.5rem; }
[class*="st-key-results_list"] [class*="st-key-small_run"] [data-testid="stText"] {
  font-size: var(--small); padding-left: 1.6rem; margin-top: -0.4rem; overflow-wrap: anywhere; }
[class*="st-key-proof_evidence"] { margin-bottom: 0.6rem; }
.st-key-proof_certificates button { padding: 0 0.3rem; min-height: 2rem; }
.st-key-proof_certificates button p { font-size: var(--small); }
.proof-cells { display: grid; gap: 0.3rem; }
.proof-cell { min-width: 0; }
.proof-name { font-size: var(--small); color: var(--muted); font-family: monospace;
  overflow-wrap: anywhere; }
.proof-question, .proof-cell, .proof-list, .proof-note { font-size: var(--small);
  line-height: 1.35; }
.proof-question { color: var(--muted); }
.proof-mark { display: inline-block; padding: 0.1rem 0.5rem; border-radius: 0.25rem;
  white-space: nowrap; font-size: var(--small); border-left: 4px solid #868D97; }
.proof-symbol { font-weight: 700; margin-right: 0.35rem; }
.proof-passed, .proof-verified { background: #11805A22; border-color: #11805A; }
.proof-tie, .proof-checking { background: #3D93D822; border-color: #3D93D8; }
.proof-failed, .proof-refused { background: #C8453B2B; border-color: #C8453B; }
.proof-unresolved { background: #C9820A26; border-color: #C9820A; }
.proof-absent, .proof-waiting, .proof-unfinished { background: #868D971A; border-color: #868D97; }
.proof-pending { border-color: transparent; color: var(--muted); }
.proof-state { display: inline-block; border-width: 0 0 0 4px; border-style: solid;
  border-radius: 0.25rem; padding: 0.15rem 0.6rem; font-weight: 600; }
.proof-headline { font-weight: 600; margin: 0.5rem 0; line-height: 1.4; }
.proof-head { font-weight: 600; font-size: var(--small); margin: 0.5rem 0 0.2rem; }
.proof-list { margin: 0; padding-left: 1.1rem; overflow-wrap: anywhere; }
.proof-list li { font-size: var(--small); margin-bottom: 0.15rem; }
.proof-tokens { line-height: 2; overflow-wrap: anywhere; max-height: 16rem; overflow: auto; }
.proof-token, .proof-first { white-space: pre; display: inline-block; line-height: 1.4;
  border: 1px solid #868D9755; border-radius: 0.2rem; padding: 0.08rem 0.2rem;
  margin-right: 0.12rem; font-size: var(--small); }
.proof-pale { color: var(--muted); border-style: dotted; }
.proof-first { border: 2px solid #C8453B; background: #C8453B2B; font-weight: 700; }
.proof-note, .proof-skipped, .proof-about { font-weight: 400; margin: 0 0.4rem;
  font-size: var(--small); }
"""


def apply() -> None:
    """Put the style sheet on the page; it contains constants only."""
    edges = "".join(
        f'[class*="st-key-card_{tone}_"] {{ border-top: 4px solid {colour}; '
        f"--family: {colour}; }}\n"
        for tone, colour in {**TONES, "other": NEUTRAL}.items()
    )
    st.html(f"<style>{_STYLE}{edges}</style>")
