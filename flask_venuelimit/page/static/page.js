// Counts the wait down, then wakes the button. Without it the page says the wait in words, and its link is awake.
(() => {
  "use strict";

  const find = (name) => document.querySelector(`[data-limit-${name}]`);
  const waiting = find("wait");
  const time = find("time");
  const bar = find("progress");
  const over = find("over");
  const link = find("way-back");
  const back = find("back");
  const href = link && link.getAttribute("href");
  const asleep = (button) => button.getAttribute("aria-disabled") === "true";

  // a form that was refused cannot be linked to, but the page before this one still holds what was typed
  if (back && history.length > 1) {
    back.hidden = false;
    const hint = find("hint");
    if (hint) hint.hidden = true;
    back.addEventListener("click", () => asleep(back) || history.back());
  }
  if (!waiting) return;

  // Seconds. The server sent a duration, so the end is by this device's own clock, whatever it shows; a
  // chance part of it keeps those who were refused together from coming back together.
  const total = Number(waiting.dataset.limitWait) + Math.random() * Number(waiting.dataset.limitSpread || 0);
  const end = Date.now() + total * 1000;

  const two = (number) => String(number).padStart(2, "0");

  // 0:09, 12:30, 3:00:00: digits need no translation
  function clock(seconds) {
    const minutes = Math.floor(seconds / 60);
    const hours = Math.floor(minutes / 60);
    const start = hours ? `${hours}:${two(minutes % 60)}` : `${minutes}`;
    return `${start}:${two(seconds % 60)}`;
  }

  // asleep, it keeps its place in the order of focus: whoever has found it can wait there
  function sleep(button) {
    button.setAttribute("aria-disabled", "true");
    if (button !== link) return;
    link.removeAttribute("href");
    link.setAttribute("role", "link");
    link.setAttribute("tabindex", "0");
  }

  function wake(button) {
    button.removeAttribute("aria-disabled");
    if (button !== link) return;
    link.setAttribute("href", href);
    link.removeAttribute("role");
    link.removeAttribute("tabindex");
  }

  const buttons = [link, back].filter(Boolean);

  function tick() {
    const left = Math.ceil((end - Date.now()) / 1000);
    if (left <= 0) {
      // hidden, but in its place: nothing moves when the button wakes
      waiting.style.visibility = "hidden";
      if (bar) bar.hidden = true;
      if (over) over.textContent = over.dataset.text;
      buttons.forEach(wake);
      return;
    }
    if (time) time.textContent = clock(left);
    if (bar) bar.value = total - left;
    setTimeout(tick, Math.max(50, end - Date.now() - (left - 1) * 1000));
  }

  if (time) time.classList.add("limit-clock");
  if (bar) {
    bar.max = total;
    bar.hidden = false;
  }
  buttons.forEach(sleep);
  tick();
})();
