// Looks for new scores six times a minute. Without this script the page is the same, by reloading it.
"use strict";

(function () {
  const board = document.getElementById("scoreboard");
  if (!board || "over" in board.dataset) return;

  const EVERY = 10; // seconds
  const note = document.getElementById("scoreboard-note");
  const rows = board.querySelector("tbody");

  function later(seconds) {
    window.setTimeout(look, seconds * 1000);
  }

  async function look() {
    if (document.hidden) return later(EVERY);
    let wait = EVERY;
    try {
      const response = await fetch(board.dataset.url, {
        headers: { Accept: "application/json" },
        cache: "no-store",
      });
      if (response.ok) show(await response.json());
      else wait = await askedToWait(response);
    } catch (error) {
      say(`No answer (${error.message}). Trying again.`);
    }
    if (wait !== null) later(wait);
  }

  // How many seconds to stay away, or null for good. A refusal says so itself, and asking sooner would
  // only be refused again.
  async function askedToWait(response) {
    if (response.status !== 429 && response.status !== 503) {
      say(`The scores cannot be had (${response.status}). Reload the page to try again.`);
      return null;
    }
    const refusal = await response.json();
    if (refusal.retry_after === null) {
      say(refusal.detail);
      return null;
    }
    say(`${refusal.detail} Next look in ${refusal.retry_after} s.`);
    return Math.max(EVERY, refusal.retry_after);
  }

  function show(state) {
    if (state.question !== Number(board.dataset.question)) {
      window.location.reload();
      return;
    }
    rows.replaceChildren(...state.scores.map(row));
    board.querySelector(".nobody").hidden = state.scores.length > 0;
    say("");
  }

  function row(line) {
    const tr = document.createElement("tr");
    tr.classList.toggle("me", line.name === board.dataset.me);
    for (const text of [line.name, line.score]) {
      const td = document.createElement("td");
      td.textContent = text;
      tr.append(td);
    }
    return tr;
  }

  // only what is new, or a screen reader would repeat itself every ten seconds
  function say(text) {
    if (note.textContent !== text) note.textContent = text;
  }

  say("");
  later(EVERY);
})();
