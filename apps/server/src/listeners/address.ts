import type { Server } from 'node:http'
import { Server as TlsServer } from 'node:tls'

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
