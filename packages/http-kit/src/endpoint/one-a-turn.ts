const waiting: (() => void)[] = []

/** Runs pieces of long work one in each turn of the event loop, so that they hold nobody up one after the other. */
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
