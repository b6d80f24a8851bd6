const waiting: (() => void)[] = []

/** Runs long work in pieces, at most one in each event-loop tick, so that other requests run between them. */
export function oneATurn(work: () => void): void {
  if (waiting.push(work) === 1) setImmediate(next)
}

function next(): void {
  const work = waiting[0]
  try {
    work?.()
  } finally {
    waiting.shift()
    if (waiting.length > 0) setImmediate(next)
  }
}
