// Calls to the service, and its events.

export class Refused extends Error {
  constructor(status, words) { super(words); this.status = status; }
}

export async function call(path, body) {
  const options = body === undefined ? {} : { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) };
  const answer = await fetch(path, { ...options, cache: "no-store", credentials: "same-origin" });
  if (answer.status === 204) return null;
  const said = await answer.json().catch(() => ({ error: `the server answered ${answer.status}` }));
  if (!answer.ok) throw new Refused(answer.status, said.error ?? `the server answered ${answer.status}`);
  return said;
}

// The state of the study; what is known already is not sent again.
export async function newState(known) {
  const { boot, editions } = known ?? {};
  const said = await call("/api/state" + (known ? `?boot=${boot}&trials=${editions.trials}&insight=${editions.insight}` : ""));
  if (said.unchanged.includes("insight")) said.insight = known.insight;
  if (!said.unchanged.includes("trials")) return said;
  const trials = [...known.trials];
  for (const t of said.trials) trials[t.number] = t;
  return { ...said, trials };
}

// A request id: sent again after a lost answer, the server knows it and does nothing twice.
export function requestId() {
  const bytes = crypto.getRandomValues(new Uint8Array(12));
  return "page-" + Array.from(bytes, (b) => b.toString(16).padStart(2, "0")).join("");
}

// Sends until an answer comes: a server that restarts must not cost the operator an entry.
export async function insist(path, body, { tries = 8, wait = 700 } = {}) {
  for (let turn = 0; ; turn++) {
    try {
      return await call(path, body);
    } catch (error) {
      if (error instanceof Refused || turn >= tries) throw error;
      await new Promise((done) => setTimeout(done, wait));
    }
  }
}

// The token may come in the address, after a '#', which no server logs; it is exchanged for a cookie.
export async function enter() {
  const found = new URLSearchParams(location.hash.slice(1)).get("token");
  if (found === null) return;
  history.replaceState(null, "", location.pathname);
  await call("/api/session", { token: found });
}

export function listen(onChange, onLink) {
  let source = null;
  const open = () => {
    source = new EventSource("/api/events");
    source.addEventListener("changed", (event) => { onLink("live"); onChange(JSON.parse(event.data)); });
    source.onerror = () => {
      onLink("lost");
      source.close();
      setTimeout(open, 1000);
    };
  };
  open();
  addEventListener("pagehide", () => source?.close());
}
