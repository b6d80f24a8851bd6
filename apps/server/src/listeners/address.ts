import { lookup } from 'node:dns/promises'
import type { Server } from 'node:http'
import type { Server as NetServer } from 'node:net'
import { createServer } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { Server as TlsServer } from 'node:tls'

import { ServerError } from '../errors.ts'

/** The address of a listener. */
export interface Address {
  readonly host: string
  readonly port: number
  /** `http://host:port`, or `https://…` */
  readonly url: string
}

/** A listener's section of the configuration. */
interface Bind {
  readonly host: string
  readonly port: number
}

/** The options of `listen`. */
interface ListenOptions extends Bind {
  readonly backlog: number
}

/**
 * Opens a listener. `open` binds the first address.
 * @throws ServerError START_FAILED, with the setting to change
 */
export async function listen(
  server: Server,
  section: 'http' | 'api',
  { host, port }: Bind,
  open: (options: ListenOptions) => Promise<unknown> = (options) => bind(server, options),
): Promise<Address> {
  try {
    await open({ host, port, backlog: BACKLOG })
    await listenOnOtherAddresses(server, host)
  } catch (error) {
    throw new ServerError('START_FAILED', [`${section}.${reason(error, host, port)}`], { cause: error })
  }
  const bound = server.address()
  const actual = typeof bound === 'object' && bound !== null ? bound.port : port
  const scheme = server instanceof TlsServer ? 'https' : 'http'
  return { host, port: actual, url: `${scheme}://${host.includes(':') ? `[${host}]` : host}:${actual}` }
}

function bind(server: Server, options: ListenOptions): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(options, () => {
      server.off('error', reject)
      resolve()
    })
  })
}

/** Returns the setting that is wrong, and the problem. */
function reason(error: unknown, host: string, port: number): string {
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  const where = `port ${port} on ${host}`
  if (code === 'EADDRINUSE') return `port: ${where} is in use; stop the other process or choose another port`
  if (code === 'EACCES') return `port: no permission to listen on ${where}; choose a port from 1024`
  if (code === 'EADDRNOTAVAIL' || code === 'ENOTFOUND' || code === 'EAI_AGAIN') {
    return `host: ${host} is not an address of this machine`
  }
  return `port: cannot listen on ${where} (${String(code ?? error)})`
}

/** Returns true if only this machine can reach the listener (S7). */
export function isLoopback(server: Server): boolean {
  const bound = server.address()
  return typeof bound === 'object' && bound !== null && /^(?:::ffff:)?127\.|^::1$/.test(bound.address)
}

/** TCP keepalive detects peers that vanished, as on the first address. */
const TCP_KEEPALIVE_MS = 30_000

/**
 * The connections that the kernel accepts while the server is busy. Node's default is 511; more of a burst would wait a second
 * before they try again, or be reset. Systems that allow fewer keep to their limit.
 */
const BACKLOG = 4_096

/** Servers of further addresses, by the HTTP server that handles their connections. */
const OTHERS = new WeakMap<Server, NetServer[]>()

/**
 * Listens on the other addresses of `localhost`: on many machines it names an IPv4 and an IPv6
 * address, and clients try either. An address that cannot be bound is left out.
 */
async function listenOnOtherAddresses(server: Server, host: string): Promise<void> {
  const bound = server.address()
  if (host !== 'localhost' || typeof bound !== 'object' || bound === null) return
  const addresses = await lookup(host, { all: true }).catch(() => [])
  const others = new Set(addresses.map(({ address }) => address).filter((address) => address !== bound.address))
  for (const address of others) await listenAlso(server, address).catch(() => {})
}

/**
 * Listens on one more address, on the same port. Its connections go to the same server, so that the
 * server's limits count the connections of all addresses.
 */
export async function listenAlso(server: Server, address: string): Promise<void> {
  const bound = server.address()
  const port = typeof bound === 'object' && bound !== null ? bound.port : 0
  const options = { noDelay: true, keepAlive: true, keepAliveInitialDelay: TCP_KEEPALIVE_MS }
  const other = createServer(options, (socket) => server.emit('connection', socket))
  await new Promise<void>((resolve, reject) => {
    other.once('error', reject)
    other.listen({ port, host: address, backlog: BACKLOG }, resolve)
  })
  OTHERS.set(server, [...(OTHERS.get(server) ?? []), other])
  server.once('close', () => other.close())
}

/** Stops listening on the other addresses. Resolves when their connections have ended. */
export async function closeOtherAddresses(server: Server): Promise<void> {
  const others = OTHERS.get(server) ?? []
  OTHERS.delete(server)
  await Promise.all(others.map((other) => new Promise<void>((resolve) => other.close(() => resolve()))))
}

/**
 * The interval at which idle connections are closed, in ms, so that keep-alive does not delay a
 * shutdown.
 */
const SWEEP_MS = 25

/** A listener that is being closed. */
export interface Drain {
  /** Resolves when no call is left, or when the grace period is over and the connections were cut. */
  readonly finished: Promise<void>
  /** Resolves when the listener is closed. Calls that were cut may wait until the engine is closed. */
  readonly closed: Promise<void>
}

/**
 * Closes a listener: it accepts no new connections, waits up to `graceMs` for calls in flight, then
 * cuts their connections. `close` ends what answers the calls.
 */
export function drain(server: Server, graceMs: number, close: () => Promise<unknown>): Drain {
  const sweep = setInterval(() => server.closeIdleConnections(), SWEEP_MS)
  const inTime = new AbortController()
  // At once: Fastify would accept connections until the calls in flight are done.
  const stopped = new Promise<void>((resolve) => server.close(() => resolve()))
  const closed = Promise.all([close(), stopped, closeOtherAddresses(server)])
    .then(() => {})
    .finally(() => {
      inTime.abort()
      clearInterval(sweep)
    })
  const cut = delay(graceMs, undefined, { signal: inTime.signal }).then(
    () => server.closeAllConnections(),
    () => {},
  )
  return { finished: Promise.race([closed, cut]), closed }
}
