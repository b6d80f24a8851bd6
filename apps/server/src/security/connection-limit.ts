import { readFileSync } from 'node:fs'
import type { Server } from 'node:net'

import type { TellSecurity } from './events.ts'
import { Refusals } from './refusals.ts'

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

/**
 * Closes connections beyond what the process may have open, and says so: at the limit itself the system would refuse
 * everything, the store's files and operators included, and nobody would be told.
 * @param openFiles How many files the process may have open; undefined sets no limit
 */
export function limitConnections(server: Server, tell: TellSecurity, openFiles: number | undefined): Disposable {
  if (openFiles === undefined) return { [Symbol.dispose]() {} }
  const most = openFiles - Math.min(Math.ceil(openFiles / 4), MOST_KEPT_BACK)
  const reason = `${most} connections are open, and the process may have ${openFiles} files open; raise that limit (ulimit -n)`
  const refusals = new Refusals(({ address, count }) => tell({ kind: 'connections.refused', address, count, reason }))
  server.maxConnections = most
  server.on('drop', (dropped) => refusals.add(dropped?.remoteAddress, ''))
  return refusals
}
