import type { BrokerObserver } from '@signalbox/broker-core'
import { parseRoutingTable, Routing, RoutingTableError } from '@signalbox/broker-core'
import { parseRoutingTableSteps } from '@signalbox/broker-core/internal'
import { watchFiles } from '@signalbox/http-kit'

import { ServerError } from '../errors.ts'
import { inSlices } from '../files/in-slices.ts'
import type { Logger } from '../logging/logger.ts'

/** The routing table of a file: read at the start, and again whenever the file changes. */
export interface RoutingFile extends Disposable {
  readonly routing: Routing
  /** Logs each way in which a rule fails once for each table; the metrics count every time. */
  readonly observer: BrokerObserver
}

/**
 * Opens the routing table. A file that turns bad later is reported, and the table that was good stays in force.
 * @throws ServerError CONFIG_INVALID naming every problem of the file
 */
export function openRoutingFile(file: string, log: Logger, lookMs?: number): RoutingFile {
  const reported = new Set<string>()
  const routing = new Routing()
  const watched = stopTheStart(file, () =>
    watchFiles([file], {
      parse: ([text = '']) => parseRoutingTable(jsonOf(text)),
      reparse: async ([text = '']) => inSlices(parseRoutingTableSteps(jsonOf(text))),
      changed(table) {
        routing.replace(table)
        reported.clear()
        log.info({ file, rules: table.rules.length }, 'routing table reloaded')
      },
      refused(error) {
        log.error(
          { file, problems: problemsOf(file, error) },
          'routing table not reloaded: the one before stays in force',
        )
      },
      lookMs,
    }),
  )
  routing.replace(watched.value)

  return {
    routing,
    observer: {
      routingFailed({ rule, reason, from, to, detail }) {
        const key = `${rule} ${reason}`
        if (reported.has(key)) return
        reported.add(key)
        log.warn(
          { entry: rule, reason, from, to, detail },
          'routing: a copy was not made; further ones are counted only',
        )
      },
    },
    [Symbol.dispose]: () => watched[Symbol.dispose](),
  }
}

/** @throws RoutingTableError */
function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    throw new RoutingTableError(['it is not JSON; allowed: an array of {key, keyType, routes}'])
  }
}

function stopTheStart<T>(file: string, open: () => T): T {
  try {
    return open()
  } catch (error) {
    throw new ServerError('CONFIG_INVALID', problemsOf(file, error), { cause: error })
  }
}

function problemsOf(file: string, error: unknown): readonly string[] {
  if (error instanceof RoutingTableError) return error.problems.map((problem) => `routing.file: ${file}: ${problem}`)
  const reason = error instanceof Error ? error.message : String(error)
  return [`routing.file: ${reason}; allowed: a JSON file with a routing table`]
}
