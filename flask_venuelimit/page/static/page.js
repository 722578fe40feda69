// Counts the wait down, then offers the way back. Without it the page says the wait in words.
(() => {
  "use strict";

  const waiting = document.querySelector("[data-limit-wait]");
  if (!waiting) return;
  const time = document.querySelector("[data-limit-time]");
  const bar = document.querySelector("[data-limit-progress]");
  const over = document.querySelector("[data-limit-over]");
  const link = document.querySelector("[data-limit-way-back]");
  const href = link && link.getAttribute("href");
  const total = Number(waiting.dataset.limitWait);
  // the end by this device's own clock, whatever it shows: the server sent a duration
  const end = Date.now() + total * 1000;

  const two = (number) => String(number).padStart(2, "0");

  // 0:09, 12:30, 3:00:00: digits need no translation
  function clock(seconds) {
    const minutes = Math.floor(seconds / 60);
    const hours = Math.floor(minutes / 60);
    const start = hours ? `${hours}:${two(minutes % 60)}` : `${minutes}`;
    return `${start}:${two(seconds % 60)}`;
  }

  function close() {
    if (!link) return;
    link.removeAttribute("href");
    link.setAttribute("role", "link");
    link.setAttribute("aria-disabled", "true");
  }

  function open() {
    waiting.hidden = true;
    if (bar) bar.hidden = true;
    if (over) over.textContent = over.dataset.text;
    if (!link) return;
    link.setAttribute("href", href);
    link.removeAttribute("role");
    link.removeAttribute("aria-disabled");
  }

  function tick() {
    const left = Math.ceil((end - Date.now()) / 1000);
    if (left <= 0) return open();
    if (time) time.textContent = clock(left);
    if (bar) bar.value = total - left;
    setTimeout(tick, Math.max(50, end - Date.now() - (left - 1) * 1000));
  }

  if (bar) bar.hidden = false;
  close();
  tick();
})();
