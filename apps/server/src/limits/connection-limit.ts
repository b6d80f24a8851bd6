import { readFileSync } from 'node:fs'
import type { Server, Socket } from 'node:net'

import { networkOf } from '@signalbox/http-kit'

import type { NotifySecurity } from '../security/events.ts'
import { Refusals } from '../security/refusals.ts'

/** Open files that connections of clients are never given: the store, operators, agents and key servers need some. */
const MOST_KEPT_BACK = 4_096

/** How many files the process may have open, connections among them; undefined where the system does not say. */
export function openFileLimit(limits = '/proc/self/limits'): number | undefined {
  try {
    const limit = /^Max open files +(\d+)/m.exec(readFileSync(limits, 'utf8'))?.[1]
    return limit === undefined ? undefined : Number(limit)
  } catch {
    return undefined
  }
}

/** Which listener the connections are to: operators get some of what is kept back from everybody else. */
export type LimitedListener = 'shared' | 'management'

/** How many connections a listener takes. */
function mostConnections(openFiles: number, listener: LimitedListener): number {
  const keptBack = Math.min(Math.ceil(openFiles / 4), MOST_KEPT_BACK)
  return listener === 'shared' ? openFiles - keptBack : Math.ceil(keptBack / 2)
}

export interface ConnectionLimitOptions {
  /** How many files the process may have open; undefined sets no limit. */
  readonly openFiles: number | undefined
  /** @default shared */
  readonly listener?: LimitedListener
  /** Whether an address may have more than half of the connections, because many clients stand behind it. @default never */
  readonly isTrustedProxy?: (address: string) => boolean
}

/**
 * Closes connections beyond what the process may have open, and beyond half of that from one network address, and says
 * so: at the limit itself the system would refuse everything, the store's files and operators included, and nobody would
 * be told.
 */
export function limitConnections(
  server: Server,
  notify: NotifySecurity,
  { openFiles, listener = 'shared', isTrustedProxy = () => false }: ConnectionLimitOptions,
): Disposable {
  if (openFiles === undefined) return { [Symbol.dispose]() {} }
  const most = mostConnections(openFiles, listener)
  const mostOfOne = Math.ceil(most / 2)
  const files = `the process may have ${openFiles} files open; raise that limit (ulimit -n)`
  const refusals = new Refusals((refusal) => notify({ kind: 'connections.refused', ...refusal }))
  server.maxConnections = most
  const full = (from: string | undefined): void => refusals.add(from, `${most} connections are open, and ${files}`)
  server.on('drop', (dropped) => full(dropped?.remoteAddress))

  const byNetwork = new Map<string, number>()
  let all = 0
  server.prependListener('connection', (socket: Socket) => {
    const { remoteAddress } = socket
    all++
    socket.once('close', () => all--)
    // Those that came by another address are not among those that the server itself counts.
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
      `${open} connections from there are open, half of what is allowed: ${files}, or name it in TRUSTED_PROXIES if it is a proxy of yours`,
    )
    socket.destroy()
  })
  return refusals
}
