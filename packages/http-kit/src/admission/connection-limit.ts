import { readFileSync } from 'node:fs'
import type { Server, Socket } from 'node:net'

import { Refusals } from './refusal-reports.ts'
import type { RefusalReport } from './refusal-reports.ts'
import { networkOf } from './trusted-proxies.ts'

/**
 * The most open files that are reserved for the store, operators, agents and key servers, and not
 * available to clients' connections.
 */
const MOST_KEPT_BACK = 4_096

/**
 * Returns the process's limit of open files, including connections; undefined if the system does
 * not report it.
 */
export function openFileLimit(limits = '/proc/self/limits'): number | undefined {
  try {
    const limit = /^Max open files +(\d+)/m.exec(readFileSync(limits, 'utf8'))?.[1]
    return limit === undefined ? undefined : Number(limit)
  } catch {
    return undefined
  }
}

/** The listener of the connections. Operators get half of the files that are reserved. */
type LimitedListener = 'shared' | 'management'

/** Returns the most connections of a listener. */
function mostConnections(openFiles: number, listener: LimitedListener): number {
  const keptBack = Math.min(Math.ceil(openFiles / 4), MOST_KEPT_BACK)
  return listener === 'shared' ? openFiles - keptBack : Math.ceil(keptBack / 2)
}

export interface ConnectionLimitOptions {
  /** The process's limit of open files; undefined sets no limit. */
  readonly openFiles: number | undefined
  /** @default shared */
  readonly listener?: LimitedListener
  /**
   * Returns true for a proxy, which may have more than half of the connections because it serves
   * many clients. @default never
   */
  readonly isTrustedProxy?: (address: string) => boolean
}

/**
 * Closes connections above the listener's limit, and above half of it from one network address, and
 * reports them. At the limit of the process itself the system would refuse everything, including
 * the store's files and operators, without a report.
 */
export function limitConnections(
  server: Server,
  report: (refusal: RefusalReport) => void,
  { openFiles, listener = 'shared', isTrustedProxy = () => false }: ConnectionLimitOptions,
): Disposable {
  if (openFiles === undefined) return { [Symbol.dispose]() {} }
  const most = mostConnections(openFiles, listener)
  const mostOfOne = Math.ceil(most / 2)
  const files = `the process may have ${openFiles} files open; raise that limit (ulimit -n)`
  const refusals = new Refusals(report)
  server.maxConnections = most
  const full = (from: string | undefined): void => refusals.add(from, `${most} connections are open, and ${files}`)
  server.on('drop', (dropped) => full(dropped?.remoteAddress))

  const byNetwork = new Map<string, number>()
  let all = 0
  server.prependListener('connection', (socket: Socket) => {
    const { remoteAddress } = socket
    all++
    socket.once('close', () => all--)
    // `server.maxConnections` does not count connections that came through another address.
    if (all > most) {
      full(remoteAddress)
      socket.destroy()
      return
    }
    const network = networkOf(remoteAddress)
    const open = byNetwork.get(network) ?? 0
    byNetwork.set(network, open + 1)
    socket.once('close', () => {
      const left = (byNetwork.get(network) ?? 1) - 1
      if (left > 0) byNetwork.set(network, left)
      else byNetwork.delete(network)
    })
    if (open < mostOfOne || (remoteAddress !== undefined && isTrustedProxy(remoteAddress))) return
    refusals.add(
      remoteAddress,
      `${open} connections from there are open, half of all allowed connections: ${files}, or add the address to TRUSTED_PROXIES if it is your proxy`,
    )
    socket.destroy()
  })
  return refusals
}
