// What a page gains with scripts: digests that copy on click, and live progress. It reads well without.
"use strict";

function copyable(element) {
  element.setAttribute("role", "button");
  element.tabIndex = 0;
  element.setAttribute("aria-label", "Copy " + element.dataset.copy);
  const copy = async () => {
    if (String(getSelection())) return; // somebody is selecting by hand
    await write(element.dataset.copy);
    element.classList.add("copied");
    setTimeout(() => element.classList.remove("copied"), 1200);
  };
  element.addEventListener("click", copy);
  element.addEventListener("keydown", (event) => {
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      copy();
    }
  });
}

async function write(text) {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  const area = document.createElement("textarea"); // plain HTTP to another machine has no clipboard of its own
  area.value = text;
  document.body.append(area);
  area.select();
  document.execCommand("copy");
  area.remove();
}

function show(job) {
  for (const place of document.querySelectorAll(`[data-mark="${job.job}"]`)) place.innerHTML = job.mark;
  for (const place of document.querySelectorAll(`[data-job="${job.job}"]`)) {
    const bar = place.querySelector("progress");
    if (job.final) {
      bar?.remove();
    } else if (job.most) {
      bar.max = job.most;
      bar.value = job.value;
    } else {
      bar.removeAttribute("value");
    }
    place.querySelector("[data-says]").textContent = job.text ?? "done";
  }
}

function follow(address) {
  const SILENCE = 20000; // four signs of life missed: the line is dead, whatever the browser thinks
  const AGAIN = 3000;
  const lost = document.querySelector("[data-lost]");
  const single = document.querySelector(".verdict");
  const started = single?.dataset.state;
  let source, watch;
  const alive = () => {
    lost.hidden = true;
    clearTimeout(watch);
    watch = setTimeout(gone, SILENCE);
  };
  const gone = () => {
    lost.hidden = false;
    clearTimeout(watch);
    source.close();
    watch = setTimeout(open, AGAIN);
  };
  const open = () => {
    source = new EventSource(address);
    source.addEventListener("open", alive);
    source.addEventListener("beat", alive);
    source.addEventListener("error", gone);
    source.addEventListener("job", (event) => {
      alive();
      const job = JSON.parse(event.data);
      show(job);
      if (single && job.state !== started) location.reload(); // begun or final: the page has more to say
    });
    source.addEventListener("end", () => {
      clearTimeout(watch);
      source.close();
    });
  };
  open();
  addEventListener("pagehide", () => {
    clearTimeout(watch);
    source.close();
  });
  addEventListener("pageshow", (event) => {
    if (event.persisted) open();
  });
}

document.querySelectorAll("[data-copy]").forEach(copyable);
if (document.body.dataset.live) follow(document.body.dataset.live);
