import { lookup } from 'node:dns/promises'
import type { Server as HttpServer } from 'node:http'
import type { Server } from 'node:net'
import { createServer } from 'node:net'

/** TCP keepalive detects peers that vanished, as on the first address. */
const TCP_KEEPALIVE_MS = 30_000

/**
 * The connections that the kernel accepts while the server is busy. Node's default is 511; more of a burst would wait a second
 * before they try again, or be reset. Systems that allow fewer keep to their limit.
 */
export const BACKLOG = 4_096

/** Servers of further addresses, by the HTTP server that handles their connections. */
const OTHERS = new WeakMap<HttpServer, Server[]>()

/**
 * Listens on the other addresses of `localhost`: on many machines it names an IPv4 and an IPv6
 * address, and clients try either. An address that cannot be bound is left out.
 */
export async function listenOnOtherAddresses(server: HttpServer, host: string): Promise<void> {
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
export async function listenAlso(server: HttpServer, address: string): Promise<void> {
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
export async function closeOtherAddresses(server: HttpServer): Promise<void> {
  const others = OTHERS.get(server) ?? []
  OTHERS.delete(server)
  await Promise.all(others.map((other) => new Promise<void>((resolve) => other.close(() => resolve()))))
}
