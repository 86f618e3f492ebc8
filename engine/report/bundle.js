// Lists, searches, shows and replays the samples of a bundle.  Every name and answer is set as text.
"use strict";
const parts = new Map(); // number of a file below data/ -> its samples
const loads = new Map(); // the same number -> what ends when it is loaded
const pending = []; // what is being unpacked
let index = { chunk: 1, samples: [] };
let playing = null;
let opened = -1; // the place of the shown sample in the list

function stagescope(number, packed) { // called by the files below data/
  pending.push(unpacked(packed).then(value => {
    if (number < 0) index = value;
    else parts.set(number, value);
  }));
}

async function unpacked(packed) { // JSON of gzip in base64
  const bytes = Uint8Array.from(atob(packed), letter => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).json();
}

const byId = name => document.getElementById(name);

function made(tag, text = "", name = "") {
  const node = document.createElement(tag);
  if (text !== "") node.textContent = text;
  if (name) node.className = name;
  return node;
}

function load(number) { // the samples of a file below data/, once
  if (parts.has(number)) return Promise.all(pending);
  if (!loads.has(number)) loads.set(number, new Promise(done => {
    const script = document.createElement("script");
    script.src = `data/${number}.js`;
    script.addEventListener("load", () => done(Promise.all(pending)));
    script.addEventListener("error", () => {
      byId("sample").textContent = `data/${number}.js is missing: copy the whole folder.`;
      loads.delete(number);
      done();
    });
    document.head.append(script);
  }));
  return loads.get(number);
}

async function search() { // questions, answers and references of all samples
  const all = Math.ceil(index.samples.length / index.chunk);
  if (byId("search").value) await Promise.all([...Array(all).keys()].map(load));
  list();
}

function wanted() {
  const words = byId("search").value.toLowerCase().split(/\s+/).filter(Boolean);
  const kind = byId("kind").value;
  return index.samples.map((sample, place) => ({ sample, place })).filter(({ sample, place }) => {
    const [id, sequence, question, alike, failed] = sample;
    const said = parts.get(Math.floor(place / index.chunk))?.[place % index.chunk];
    const answers = said ? said.answers.map(answer => answer.text).join(" ") + said.reference : "";
    const text = `${id} ${sequence} ${question} ${answers}`.toLowerCase();
    return words.every(word => text.includes(word))
      && (kind === "" || (kind === "failed" ? failed > 0 : alike !== null && alike < 1));
  });
}

function list() {
  const rows = wanted(), shown = rows.slice(0, 200), box = byId("list");
  box.replaceChildren(...shown.map(({ sample, place }) => {
    const button = made("button", sample[1] || sample[0]); // the sequence, if it is known
    const alike = sample[3] === null ? "" : `agreement ${sample[3].toFixed(3)}`;
    const failed = sample[4] ? `${sample[4]} failed` : "";
    const id = sample[1] ? sample[0] : "";
    button.append(made("small", [id, alike, failed].filter(Boolean).join(" · ")));
    button.dataset.place = place;
    button.addEventListener("click", () => { location.hash = "sample=" + encodeURIComponent(sample[0]); });
    return button;
  }));
  const more = rows.length > shown.length ? `, the first ${shown.length} listed` : "";
  mark();
  byId("number").textContent = `${rows.length} of ${index.samples.length} samples${more}`;
}

function mark() {
  for (const button of byId("list")?.children ?? [])
    button.setAttribute("aria-current", String(Number(button.dataset.place) === opened));
}

function open() {
  const match = /^#sample=(.*)$/.exec(location.hash);
  let id = index.samples.length ? index.samples[0][0] : "";
  try { if (match) id = decodeURIComponent(match[1]); } catch { return; }
  const place = index.samples.findIndex(sample => sample[0] === id);
  if (place < 0) return;
  const number = Math.floor(place / index.chunk);
  if (!parts.has(number)) {
    load(number).then(() => { if (parts.has(number)) open(); });
    return;
  }
  draw(parts.get(number)[place % index.chunk]);
  opened = place;
  mark();
  if (match) byId("samples").scrollIntoView();
}

function draw(sample) {
  const box = byId("sample");
  const head = [made("h3", sample.id), made("p", sample.question)];
  if (sample.reference) head.push(made("p", `Reference: ${sample.reference}`, "soft"));
  const media = made("div", "", "media");
  for (const [address, words] of sample.media) {
    const figure = made("figure");
    const picture = made(address.endsWith(".mp4") ? "video" : "img");
    picture.src = address;
    if (picture.tagName === "VIDEO") { picture.controls = true; picture.preload = "none"; picture.title = words; }
    else picture.alt = words;
    figure.append(picture, made("figcaption", words));
    media.append(figure);
  }
  const cards = made("div", "", "cards");
  const longest = Math.max(...sample.answers.map(answer => answer.total || 0));
  const first = sample.answers.find(answer => !answer.error)?.label; // what differences are from
  cards.append(...sample.answers.map(answer => card(answer, longest, first)));
  const timed = sample.answers.filter(answer => answer.pieces[0].length).length;
  box.replaceChildren(...head, media, ...(timed ? [controls(sample, cards)] : []), cards);
  if (timed > 1)
    cards.before(made("p", "The models ran one after another; the replay starts them together.", "soft"));
}

function controls(sample, cards) {
  const box = made("div", "", "choose"), clock = made("span");
  const button = (name, act) => {
    const node = made("button", name);
    node.addEventListener("click", () => act(node));
    box.append(node);
    return node;
  };
  const hold = paused => {
    if (playing) playing.paused = paused;
    pause.textContent = paused ? "Continue" : "Pause";
  };
  for (const [name, slow] of [["Replay", 1], ["at 0.25x", 4], ["at 0.1x", 10]])
    button(name, () => {
      replay(sample.answers, [...cards.children], slow, clock, () => { pause.disabled = true; });
      pause.disabled = false;
      hold(false);
    });
  const pause = button("Pause", node => hold(node.textContent === "Pause"));
  pause.disabled = true;
  box.append(clock);
  return box;
}

// Stages and words at their recorded times, `slow` times slower.
function replay(answers, cards, slow, clock, ended) {
  const mine = playing = { paused: false };
  const longest = Math.max(...answers.map(answer => answer.total || 0));
  const letters = answers.map(answer => [...answer.text]);
  const sums = steps => steps.map((sum => step => sum += step)(0));
  const pieces = answers.map(answer => answer.pieces.map(sums)); // moments in 0.1 ms, letters
  let at = 0, before = performance.now();
  const frame = () => {
    if (playing !== mine || !clock.isConnected) return;
    const now = performance.now();
    if (!mine.paused) at = Math.min(longest, at + (now - before) / slow);
    before = now;
    clock.textContent = `${Math.round(at)} ms`;
    answers.forEach((answer, place) => {
      const [moments, known] = pieces[place];
      if (!moments.length) return;
      const count = at === longest ? moments.length : moments.filter(moment => 10 * at >= moment).length;
      const text = letters[place].slice(0, known[count - 1] ?? 0).join("");
      cards[place].querySelector(".answer").textContent = text;
      answer.bars.forEach(([, start, length], bar) => {
        const done = Math.min(length, Math.max(0, at - start));
        const node = cards[place].querySelectorAll(".track i")[bar];
        node.style.width = `${100 * done / longest}%`;
        node.hidden = done === 0;
      });
    });
    if (at < longest) requestAnimationFrame(frame);
    else ended();
  };
  frame();
}

function card(answer, longest, first) {
  const box = made("article", "", "card");
  box.style.borderColor = answer.colour;
  box.append(made("h4", answer.label));
  box.append(made("p", answer.error || answer.text, answer.error ? "error" : "answer"));
  const figures = made("dl");
  for (const [name, value] of answer.figures) {
    const pair = made("div");
    pair.append(made("dt", name), made("dd", value));
    figures.append(pair);
  }
  const track = made("div", "", "track");
  track.setAttribute("role", "img");
  track.setAttribute("aria-label", answer.stages);
  for (const [name, start, length, colour] of answer.bars) {
    const bar = made("i");
    bar.title = name;
    bar.style.left = `${100 * start / longest}%`;
    bar.style.width = `${100 * length / longest}%`;
    bar.style.background = colour;
    track.append(bar);
  }
  box.append(figures, track, made("p", answer.stages, "soft"));
  box.append(...answer.notes.map(note => made("p", note, "soft")));
  if (answer.changes.length) {
    const details = made("details"), text = made("p", "", "answer");
    details.append(made("summary", `Differences from ${first}`));
    const tags = { both: "span", first: "del", second: "ins" };
    for (const [kind, piece] of answer.changes) {
      if (text.textContent && !/^\s/.test(piece)) text.append(" ");
      text.append(made(tags[kind], piece));
    }
    details.append(text);
    box.append(details);
  }
  return box;
}

addEventListener("DOMContentLoaded", async () => {
  for (const block of document.querySelectorAll("script[data-number]")) // a bundle of one file
    stagescope(Number(block.dataset.number), block.textContent);
  await Promise.all(pending);
  if (byId("list")) { // more than one sample
    byId("search").addEventListener("input", search);
    byId("kind").addEventListener("change", list);
    list();
  }
  addEventListener("hashchange", open);
  open();
  if (frameElement) { // within another page: as high as its content, on that page's ground
    frameElement.style.colorScheme = getComputedStyle(document.documentElement).colorScheme;
    new ResizeObserver(() => {
      frameElement.style.height = `${document.documentElement.offsetHeight}px`;
    }).observe(document.documentElement);
  }
});
