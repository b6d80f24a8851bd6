import { readFileSync } from 'node:fs'
import { createServer } from 'node:net'

/** Above the ports that browsers refuse to call. */
const FIRST = 11_000
/** The first port that a system gives to connections and to listeners on port 0, where it does not say so itself. */
const USUAL_EPHEMERAL = 32_768
/** With fewer ports two processes would soon choose the same one. */
const FEWEST = 1_000

const count = firstEphemeral() - FIRST
let next = Math.floor(Math.random() * count)

function firstEphemeral(): number {
  try {
    return Number.parseInt(readFileSync('/proc/sys/net/ipv4/ip_local_port_range', 'utf8'), 10)
  } catch {
    return USUAL_EPHEMERAL
  }
}

/**
 * Returns a port that was free a moment ago. The system gives it to no other socket meanwhile: it is below the ports
 * of connections and of listeners on port 0, if there are enough of those.
 */
export async function freePort(): Promise<number> {
  if (count < FEWEST) {
    const port = await listenBriefly(0)
    if (port === undefined) throw new Error('no port is free')
    return port
  }
  for (let attempt = 0; attempt < count; attempt++) {
    next = (next + 1) % count
    const port = await listenBriefly(FIRST + next)
    if (port !== undefined) return port
  }
  throw new Error(`no port of ${FIRST} to ${FIRST + count - 1} is free`)
}

/** Resolves with the port after it has been closed; with `undefined` if it is in use. */
async function listenBriefly(port: number): Promise<number | undefined> {
  const server = createServer()
  const listens = await new Promise<boolean>((resolve) => {
    server.once('error', () => resolve(false))
    server.listen(port, '127.0.0.1', () => resolve(true))
  })
  if (!listens) return undefined
  const address = server.address()
  await new Promise((resolve) => server.close(resolve))
  return address === null || typeof address === 'string' ? undefined : address.port
}
