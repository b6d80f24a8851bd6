import { Server as TlsServer } from 'node:tls'

import type { FastifyInstance } from 'fastify'

import { ServerError } from '../errors.ts'
import { BACKLOG, listenOnOtherAddresses } from './other-addresses.ts'

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

/**
 * Opens a listener.
 * @throws ServerError START_FAILED, with the setting to change
 */
export async function listen(app: FastifyInstance, section: 'http' | 'api', { host, port }: Bind): Promise<Address> {
  try {
    await app.listen({ host, port, backlog: BACKLOG })
    await listenOnOtherAddresses(app.server, host)
  } catch (error) {
    throw new ServerError('START_FAILED', [`${section}.${reason(error, host, port)}`], { cause: error })
  }
  const bound = app.server.address()
  const actual = typeof bound === 'object' && bound !== null ? bound.port : port
  const scheme = app.server instanceof TlsServer ? 'https' : 'http'
  return { host, port: actual, url: `${scheme}://${host.includes(':') ? `[${host}]` : host}:${actual}` }
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
export function isLoopback(app: FastifyInstance): boolean {
  const bound = app.server.address()
  return typeof bound === 'object' && bound !== null && /^(?:::ffff:)?127\.|^::1$/.test(bound.address)
}
